"""What the API says of anchors, histories and owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from mycelium_indexer.values import Batch, IndexedAnchor, LedgerRange
from mycelium_sdk.chain.anchors import Anchor, verify_history

from .ground import (
    CONTRACT,
    NETWORK,
    Api,
    anchors_of,
    fill,
    older_anchor,
    owner_number,
    progress,
)

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

OWNER = owner_number(1)
STANDING = {"contract": CONTRACT, "network": NETWORK, "as_of_ledger": 5000, "lag": 7.5}
HOSTILE = [
    b"",
    b"https://example.org/a'; DROP TABLE anchors; --",
    b"</script><script>alert(1)</script>\"'&<>",
    b"\xff\xfe\x00\x80 no text",
    "\u2028 \U0001f602 \u202e".encode(),
    b"\x00\x1b[31m\r\nSet-Cookie: a=b",
    b"\xed\xa0\x80",  # a lone surrogate
    b"x" * 1024,
]


def as_anchor(item: dict[str, Any]) -> Anchor:
    """An anchor out of its JSON, by hex alone."""
    return Anchor(
        item["owner"],
        item["version"],
        bytes.fromhex(item["root"]),
        bytes.fromhex(item["uri_hex"]),
        bytes.fromhex(item["acl_hex"]),
        bytes.fromhex(item["previous"]),
        item["timestamp"],
    )


def pages(api: Api, path: str, limit: int) -> list[dict[str, Any]]:
    """All pages of a list."""
    found, cursor = [], ""
    while True:
        page = api.get(f"{path}?limit={limit}{cursor}").json
        found.append(page)
        assert len(page["items"]) <= limit
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def test_the_latest_anchor(store: IndexStore, api: Api) -> None:
    made = anchors_of(OWNER, [b"https://example.org/1", b"https://example.org/\xc3\xa9"], acl=b"\x00\xff")
    fill(store, made)
    answer = api.get(f"/memory/{OWNER}")
    newest = made[-1]
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert newest.anchor.previous is not None
    assert answer.json == {
        "owner": OWNER,
        "version": 2,
        "root": newest.anchor.root.hex(),
        "uri": "https://example.org/\u00e9",
        "uri_hex": "https://example.org/\u00e9".encode().hex(),
        "acl_hex": "00ff",
        "previous": newest.anchor.previous.hex(),
        "timestamp": 1_700_000_002,
        "ledger": 1002,
        "tx": newest.transaction,
        **STANDING,
    }


def test_a_contract_may_be_an_owner(store: IndexStore, api: Api) -> None:
    fill(store, anchors_of(CONTRACT, [b""]))
    assert api.get(f"/memory/{CONTRACT}").json["owner"] == CONTRACT


def test_an_older_contracts_anchor(store: IndexStore, api: Api) -> None:
    fill(store, [older_anchor(OWNER, 3)])
    answer = api.get(f"/memory/{OWNER}").json
    assert (answer["previous"], answer["timestamp"], answer["ledger"], answer["tx"]) == (None,) * 4
    history = api.get(f"/memory/{OWNER}/history").json
    assert not history["complete"]
    assert history["gaps"] == [{"first": 1, "last": 2, "noticed_ledger": 5000}]


def test_hostile_bytes_are_data(store: IndexStore, api: Api) -> None:
    for number, uri in enumerate(HOSTILE):
        owner = owner_number(number)
        fill(store, anchors_of(owner, [uri, uri], acl=uri))
        answer = api.get(f"/memory/{owner}")
        history = api.get(f"/memory/{owner}/history").json["items"]
        owners = api.get("/memory").json["items"]
        for item in (answer.json, *history, *(one for one in owners if one["owner"] == owner)):
            assert bytes.fromhex(item["uri_hex"]) == uri
            assert bytes.fromhex(item["acl_hex"]) == uri
            assert item["uri"] == as_anchor(item).uri_text
        assert answer.body.isascii()
        assert "Set-Cookie" not in answer.headers
    texts = [api.get(f"/memory/{owner_number(number)}").json["uri"] for number in range(len(HOSTILE))]
    assert [text is None for text in texts] == [number in {3, 6} for number in range(len(HOSTILE))]
    assert texts[2] == HOSTILE[2].decode()


def test_a_history_in_pages_is_proved_by_its_hash_chain(store: IndexStore, api: Api) -> None:
    made = anchors_of(OWNER, [b"%d" % number for number in range(11)])
    fill(store, made)
    fill(store, anchors_of(owner_number(2), [b"", b""]))
    found = pages(api, f"/memory/{OWNER}/history", 3)
    assert [len(page["items"]) for page in found] == [3, 3, 3, 2]
    assert all(page["complete"] is True and page["gaps"] == [] for page in found)
    served = [as_anchor(item) for page in found for item in page["items"]]
    proof = verify_history(made[-1].anchor, served)
    assert proof.verified
    assert proof.complete
    assert found[0]["contract"] == CONTRACT


def test_a_page_that_is_exactly_full_is_the_last(store: IndexStore, api: Api) -> None:
    fill(store, anchors_of(OWNER, [b""] * 4))
    assert [len(page["items"]) for page in pages(api, f"/memory/{OWNER}/history", 2)] == [2, 2]


def test_a_gap_is_told_on_every_page(store: IndexStore, api: Api) -> None:
    made = anchors_of(OWNER, [b""] * 9)
    fill(store, made[:2])
    fill(store, made[5:])
    found = pages(api, f"/memory/{OWNER}/history", 2)
    versions = [item["version"] for page in found for item in page["items"]]
    assert versions == [9, 8, 7, 6, 2, 1]
    for page in found:
        assert page["complete"] is False
        assert page["gaps"] == [{"first": 3, "last": 5, "noticed_ledger": 1006}]


class Moving:
    """A store into which an anchor comes between a history's two queries."""

    def __init__(self, store: IndexStore, late: list[list[IndexedAnchor]]) -> None:
        self._store = store
        self._late = late

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def history(self, *args: Any, **kwargs: Any) -> tuple[IndexedAnchor, ...]:
        found = self._store.history(*args, **kwargs)
        if self._late:
            fill(self._store, self._late.pop(0))
        return found


def test_a_gap_that_is_filled_meanwhile_leaves_no_hole(store: IndexStore, serve: Any) -> None:
    made = anchors_of(OWNER, [b""] * 6)
    fill(store, made[:2])
    fill(store, made[4:])
    moving = serve(Moving(store, [made[2:4]]))
    answer = moving.get(f"/memory/{OWNER}/history").json
    assert answer["complete"] is True
    assert [item["version"] for item in answer["items"]] == [6, 5, 4, 3, 2, 1]


def test_an_anchor_that_comes_meanwhile_is_on_no_page_twice(store: IndexStore, serve: Any) -> None:
    made = anchors_of(OWNER, [b""] * 5)
    fill(store, made[:4])
    moving = serve(Moving(store, [made[4:]]))
    found = pages(moving, f"/memory/{OWNER}/history", 2)
    assert [item["version"] for page in found for item in page["items"]] == [4, 3, 2, 1]


class Holed:
    """A store that loses a version without saying so."""

    def __init__(self, store: IndexStore, lost: int) -> None:
        self._store = store
        self._lost = lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def history(self, *args: Any, **kwargs: Any) -> tuple[IndexedAnchor, ...]:
        found = self._store.history(*args, **kwargs)
        return tuple(one for one in found if one.anchor.version != self._lost)


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_hole_that_nothing_explains_is_never_called_complete(
    store: IndexStore, serve: Any, version: int
) -> None:
    fill(store, anchors_of(OWNER, [b""] * 5))
    answer = serve(Holed(store, version)).get(f"/memory/{OWNER}/history")
    assert (answer.status, answer.problem) == (503, "database-unavailable")


def test_owners_are_listed_newest_first(store: IndexStore, api: Api) -> None:
    owners = [owner_number(number) for number in range(7)]
    for place, owner in enumerate(owners):
        fill(store, anchors_of(owner, [b""], start=2000 + place))
    fill(store, anchors_of(owners[3], [b"", b""], start=3000)[1:])
    found = pages(api, "/memory", 3)
    listed = [item["owner"] for page in found for item in page["items"]]
    assert listed == [owners[index] for index in (3, 6, 5, 4, 2, 1, 0)]
    assert found[0]["items"][0]["version"] == 2
    assert {key: found[-1][key] for key in ("contract", "network")} == {
        "contract": CONTRACT,
        "network": NETWORK,
    }


def test_no_owners_is_an_empty_list(store: IndexStore, api: Api) -> None:
    fill(store, [])
    assert api.get("/memory").json == {"items": [], "next": None, **STANDING}


@pytest.mark.parametrize("path", ["/memory/{}", "/memory/{}/history"])
def test_an_unknown_owner(store: IndexStore, api: Api, path: str) -> None:
    source = fill(store, anchors_of(OWNER, [b""]))
    store.advance(source, progress(5100), after="at 5000", missed=LedgerRange(5001, 5090))
    answer = api.get(path.format(owner_number(2)))
    assert (answer.status, answer.problem) == (404, "unknown-owner")
    described = {
        key: value for key, value in answer.json.items() if key not in {"type", "title", "detail", "status"}
    }
    assert described == {
        **STANDING,
        "as_of_ledger": 5100,
        "first_ledger": 900,
        "missed_ledgers": [{"first": 5001, "last": 5090}],
    }


MALFORMED = {
    "muxed": "MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ",
    "seed": "SBGWSG6BTNCKCOB3DIFBGCVMUPQFYPA2G4O34RMTB343OYPXU5DJDVMN",
    "lower case": OWNER.lower(),
    "checksum": OWNER[:-1] + ("A" if OWNER[-1] != "A" else "B"),
    "short": OWNER[:-1],
    "padded": OWNER + "=",
    "space": "%20" + OWNER,
    "newline": OWNER + "%0A",
    "not UTF-8": "%ff%fe",
    "NUL": "%00",
    "SQL": quote("' OR 1=1; DROP TABLE owners; --"),
    "markup": quote("<img src=x onerror=alert(1)>"),
    "digits of another script": quote("G" + "\u0663" * 55),
}


def test_what_is_no_owner_is_refused_and_not_repeated(
    store: IndexStore, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    caplog.set_level("DEBUG")
    for name, address in MALFORMED.items():
        for path in (f"/memory/{address}", f"/memory/{address}/history"):
            answer = api.get(path)
            assert (name, answer.status, answer.problem) == (name, 422, "malformed-address")
            assert {key: answer.json[key] for key in STANDING} == STANDING
            assert address not in answer.body.decode() + str(answer.headers)
            assert [one.name for one in caplog.records if address in repr(vars(one))] == []
    assert api.get(f"/memory/{OWNER}").status == 200


def test_an_answer_is_as_of_a_ledger_that_it_holds_everything_of(store: IndexStore, serve: Any) -> None:
    """What is remembered of the standing is never newer than what is read under it."""
    moved = [0.0]
    api = serve(store, standing_seconds=1.0, clock=lambda: 1_800_000_000.0 + moved[0])
    made = anchors_of(OWNER, [b"", b""])
    fill(store, made[:1])
    assert api.get(f"/memory/{OWNER}").json["as_of_ledger"] == 5000
    source = store.source(NETWORK, CONTRACT, "")
    store.apply(source, Batch(tuple(made[1:]), (), progress(5001)), after="at 5000")
    answer = api.get(f"/memory/{OWNER}").json
    assert (answer["version"], answer["as_of_ledger"]) == (2, 5000)
    moved[0] = 1.0
    assert api.get(f"/memory/{OWNER}").json["as_of_ledger"] == 5001
