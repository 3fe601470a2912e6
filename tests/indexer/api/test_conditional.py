"""Conditional requests, HEAD, and reading from pages of other origins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_indexer.api.etags import etag_of, is_current

from .ground import anchors_of, fill, owner_number, progress

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

    from .ground import Api

OWNER = owner_number(1)
PATHS = ["/memory", f"/memory/{OWNER}", f"/memory/{OWNER}/history"]


@pytest.mark.parametrize("path", PATHS)
def test_the_tag_is_of_what_was_anchored_alone(store: IndexStore, api: Api, path: str) -> None:
    made = anchors_of(OWNER, [b"", b""])
    source = fill(store, made[:1])
    before = api.get(path)
    store.advance(source, progress(6000), after="at 5000")
    later = api.get(path)
    assert before.json["as_of_ledger"] != later.json["as_of_ledger"]
    assert before.headers["ETag"] == later.headers["ETag"]
    assert before.headers["ETag"].startswith('W/"')
    fill(store, made[1:])
    assert api.get(path).headers["ETag"] != before.headers["ETag"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_unchanged_state_is_not_sent_again(store: IndexStore, api: Api, path: str, method: str) -> None:
    made = anchors_of(OWNER, [b"", b""])
    source = fill(store, made[:1])
    etag = api.get(path).headers["ETag"]
    store.advance(source, progress(6000), after="at 5000")
    unchanged = api.get(path, method=method, If_None_Match=etag)
    assert (unchanged.status, unchanged.body) == (304, b"")
    assert unchanged.headers["ETag"] == etag
    assert (unchanged.headers["As-Of-Ledger"], unchanged.headers["Lag"]) == ("6000", "7.5")
    fill(store, made[1:])
    assert api.get(path, method=method, If_None_Match=etag).status == 200


def test_an_unknown_owner_is_unknown_under_any_condition(store: IndexStore, api: Api) -> None:
    fill(store, [])
    assert api.get(f"/memory/{OWNER}", If_None_Match="*").status == 404


@pytest.mark.parametrize("path", [*PATHS, "/healthz", "/readyz", "/metrics", "/openapi.json"])
def test_head_is_get_without_content(store: IndexStore, api: Api, path: str) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    got, head = api.get(path), api.get(path, method="HEAD")
    assert (got.status, head.status, head.body) == (200, 200, b"")
    assert got.body
    if path != "/metrics":  # which counts this very request
        assert {**head.headers, "date": ""} == {**got.headers, "date": ""}


@pytest.mark.parametrize("path", [*PATHS, "/memory/x", "/nothing", "/openapi.json"])
def test_pages_of_any_origin_may_read(store: IndexStore, api: Api, path: str) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    answer = api.get(path, Origin="https://elsewhere.example")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    exposed = set(answer.headers["Access-Control-Expose-Headers"].split(", "))
    assert exposed == {"ETag", "Retry-After", "As-Of-Ledger", "Lag"}
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_a_preflight_allows_reading_and_nothing_else(store: IndexStore, api: Api) -> None:
    fill(store, [])
    answer = api.get(
        "/memory",
        method="OPTIONS",
        Origin="https://elsewhere.example",
        Access_Control_Request_Method="PUT",
        Access_Control_Request_Headers="if-none-match",
    )
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert answer.headers["Access-Control-Allow-Headers"] == "If-None-Match"
    assert api.get("/memory", method="OPTIONS").problem == "method-not-allowed"


TAG = etag_of({"a": 1})


@pytest.mark.parametrize(
    ("header", "current"),
    [
        (None, False),
        ("", False),
        ("*", True),
        (TAG, True),
        (TAG.removeprefix("W/"), True),
        (f'"other", W/"more" ,\t{TAG}', True),
        (f" {TAG} ", True),
        (f"{TAG},, {TAG}", True),
        ('"other"', False),
        (TAG.strip('W/"'), False),
        (f"{TAG} nonsense", False),
        (f"nonsense {TAG}", False),
        (f"{TAG}{TAG}", False),
        (f"w/{TAG[2:]}", False),
    ],
)
def test_what_a_client_says_that_it_has(header: str | None, *, current: bool) -> None:
    assert is_current(header, TAG) is current


@given(st.text(alphabet='W/"*, \tab', max_size=40))
def test_no_header_breaks_the_parser(header: str) -> None:
    assert is_current(header, '"ab"') in {True, False}
