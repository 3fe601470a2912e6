"""What the pages say, as they come without a script having run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mycelium_indexer.values import Batch, LedgerRange
from mycelium_sdk.errors import StoreUnavailable
from tests.indexer.api.ground import (
    CONTRACT,
    NETWORK,
    NOW,
    OTHER_CONTRACT,
    Api,
    anchors_of,
    fill,
    older_anchor,
    owner_number,
    progress,
)
from tests.indexer.web.documents import Document

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_indexer.store.base import IndexStore

OWNER = owner_number(1)
HERE = f"/owners/{OWNER}"


def page(site: Api, target: str, status: int = 200) -> Document:
    answer = site.get(target)
    assert answer.status == status
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return Document(answer.body.decode("utf-8"))


def rows(document: Document) -> list[str]:
    return [row.text for row in document.all("tr")[1:]]


def facts(document: Document) -> list[str]:
    return [one.text for one in document.all("dd")[:3]]


def standing(document: Document) -> str:
    """What is said of how closely the chain is followed."""
    said = [one for one in document.all("p") if "standing" in (one.attributes.get("class") or "").split()]
    assert len(said) == 3
    (visible,) = [one.text for one in said if "hidden" not in one.attributes]
    return visible


def links(document: Document, text: str) -> list[str]:
    return [one.attributes["href"] or "" for one in document.all("a") if one.text == text]


def test_owners_are_listed_newest_first(store: IndexStore, site: Api) -> None:
    anchors = [
        anchor
        for number in range(3)
        for anchor in anchors_of(owner_number(number), [b"https://a.example/b"] * 2, start=1000 + 10 * number)
    ]
    fill(store, anchors)
    document = page(site, "/")
    assert document.one("h1").text == "Anchored memories"
    assert [one.split()[:2] for one in rows(document)] == [[owner_number(n), "2"] for n in (2, 1, 0)]
    assert links(document, OWNER) == [f"./owners/{OWNER}"]
    assert "3 owners, 6 anchors, newest first." in document.one("section", id="owners").text
    assert not document.all("nav")


def test_owners_come_in_pages(store: IndexStore, site: Api) -> None:
    owners = [owner_number(number) for number in range(120)]
    fill(store, [anchors_of(owner, [b""], start=1000 + at)[0] for at, owner in enumerate(owners)])
    found, target = [], "/"
    for expected in (50, 50, 20):
        document = page(site, target)
        assert len(rows(document)) == expected
        found += [row.split()[0] for row in rows(document)]
        assert bool(links(document, "Newest")) is (target != "/")
        target = (links(document, "Older") or [""])[0].removeprefix(".")
    assert target == ""
    assert found == owners[::-1]
    assert links(document, "Newest") == ["./"]


def test_an_owner_has_a_picture_and_a_table(store: IndexStore, site: Api) -> None:
    anchors = anchors_of(OWNER, [f"https://a.example/{n}".encode() for n in range(1, 4)])
    fill(store, anchors)
    document = page(site, HERE)
    assert document.one("h1").text == f"Memory of {OWNER}"
    assert document.one("h2", id="latest-title").text == "Version 3, the latest"
    picture = document.one("svg", role="img")
    assert picture.attributes["aria-labelledby"] == "picture-title picture-text"
    assert document.one("desc", id="picture-text").text.startswith(
        "3 versions, from 1 to 3, anchored from 2023"
    )
    titles = [one.text for one in document.all("title")[2:]]
    assert titles == [
        f"Version {one.anchor.version}, 2023-11-14 22:13:2{one.anchor.version} UTC, "
        f"root {one.anchor.root.hex()[:12]}…"
        for one in anchors
    ]
    assert (
        len(document.all("circle", class_="point")) + len(document.all("circle", class_="point newest")) == 3
    )
    assert [row.split()[0] for row in rows(document)] == ["3", "2", "1"]
    latest = document.one("section", id="latest").text
    assert anchors[-1].anchor.root.hex() in latest
    assert str(anchors[-1].transaction) in latest
    assert links(document, "https://a.example/3") == ["https://a.example/3"] * 2


def test_hundreds_of_versions_are_one_picture_and_pages_of_a_table(store: IndexStore, site: Api) -> None:
    fill(store, anchors_of(OWNER, [b""] * 612))
    first = page(site, HERE)
    assert len(first.all("circle", class_="point")) == 499
    assert len(first.all("circle", class_="point newest")) == 1
    found, document = [row.split()[0] for row in rows(first)], first
    while links(document, "Older"):
        document = page(site, links(document, "Older")[0].removeprefix(".."))
        found += [row.split()[0] for row in rows(document)]
        assert document.one("h2", id="latest-title").text == "Version 612, the latest"
        assert not document.all("circle", class_="point newest")
    assert found == [str(number) for number in range(612, 0, -1)]


def test_gaps_are_shown_as_gaps(store: IndexStore, site: Api) -> None:
    anchors = anchors_of(OWNER, [b""] * 9)
    fill(store, [anchors[0], *anchors[4:6], anchors[8]])
    document = page(site, HERE)
    assert [row.split()[0] for row in rows(document)] == ["9", "7", "6", "5", "2", "1"]
    assert [row for row in rows(document) if "missing" in row] == ["7 – 8 missing here", "2 – 4 missing here"]
    assert [one.text for one in document.all("title")[2:4]] == [
        "Versions 2 to 4 are missing here",
        "Versions 7 to 8 are missing here",
    ]
    assert len(document.all("rect", class_="hole", fill="url(#missing)")) == 3  # one in the legend
    note = document.one("p", class_="gap-note").text
    assert "versions 2 to 4 (noticed at ledger 1\u202f005), versions 7 to 8" in note
    assert "This history is not complete" in note
    assert "2 gaps in histories." in page(site, "/").one("section", id="owners").text


def test_an_older_contract_has_no_times(store: IndexStore, site: Api) -> None:
    fill(store, [older_anchor(OWNER, 1), older_anchor(OWNER, 2)])
    document = page(site, HERE)
    assert facts(document)[2] == "age not known"
    assert "Evenly spaced, since this contract keeps no times." in document.one("figcaption").text
    assert rows(document)[0].split(" 07")[0] == "2 not known not known"


def test_a_time_that_is_no_date_stays_a_number(store: IndexStore, site: Api) -> None:
    (made,) = anchors_of(OWNER, [b""])
    fill(store, [replace(made, anchor=replace(made.anchor, timestamp=2**62))])
    assert facts(page(site, HERE))[2] == f"{2**62} (Unix seconds)"
    assert f"{2**62} (Unix seconds)" in rows(page(site, "/"))[0]


def test_the_page_says_how_fresh_it_is(store: IndexStore, site: Api) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    for target in ("/", HERE):
        document = page(site, target)
        assert facts(document) == ["5\u202f000", "7 s", "1157 days ago"]
        assert standing(document).startswith("The index follows the chain")


@pytest.mark.parametrize(
    ("latest", "silent", "said"),
    [
        (5005, 120.0, "The index follows the chain"),
        (5006, 0.0, "The index is catching up"),
        (5000, 121.0, "The index has stopped following the chain"),
        (9000, 121.0, "The index has stopped following the chain"),
    ],
)
def test_an_index_that_does_not_follow_says_so(
    store: IndexStore, site: Api, latest: int, silent: float, said: str
) -> None:
    source = store.source(NETWORK, CONTRACT, "")
    moved = replace(progress(), latest_ledger=latest, asked_at=NOW + 0.5 - silent)
    assert store.apply(source, Batch((), (), moved), after=None)
    assert standing(page(site, "/")).startswith(said)


def test_nobody_has_anchored_yet(store: IndexStore, site: Api) -> None:
    fill(store, [])
    document = page(site, "/")
    assert document.one("p", class_="empty").text.startswith("Nobody has anchored yet.")
    assert facts(document)[2] == "none yet"


def test_ledgers_that_were_missed_are_told(store: IndexStore, site: Api) -> None:
    source = fill(store, anchors_of(OWNER, [b""]))
    assert store.advance(source, progress(6000), after="at 5000", missed=LedgerRange(5001, 5900))
    said = "ledgers 5\u202f001 to 5\u202f900 were gone before they could be read"
    assert said in page(site, "/").one("section", id="owners").text
    assert said in page(site, f"/owners/{owner_number(7)}", 404).one("main").text


def test_an_unknown_owner(store: IndexStore, site: Api) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    document = page(site, f"/owners/{owner_number(7)}", 404)
    assert document.one("h1").text == "Unknown owner"
    assert "followed this contract since ledger 900." in document.one("main").text
    assert "data-waiting" not in document.one("body").attributes


def test_before_anything_was_ingested_the_page_waits(site: Api) -> None:
    answer = site.get("/")
    assert answer.headers["Retry-After"] == "5"
    document = page(site, "/", 503)
    assert document.one("h1").text == "Nothing ingested yet"
    assert "data-waiting" in document.one("body").attributes


def test_without_its_database_the_page_waits(
    store: IndexStore, site: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise StoreUnavailable("the server at secret-host is gone", hint="start it")

    fill(store, [])
    monkeypatch.setattr(store, "owners", fail)
    document = page(site, "/", 503)
    assert document.one("h1").text == "Database unavailable"
    assert "secret-host" not in document.one("html").text
    assert "the database cannot be used" in caplog.messages
    assert "data-waiting" in document.one("body").attributes


def test_of_several_contracts_one_is_chosen_and_kept(store: IndexStore, serve: Callable[..., Api]) -> None:
    fill(store, anchors_of(OWNER, [b""] * 60))
    fill(store, anchors_of(owner_number(2), [b""]), contract=OTHER_CONTRACT)
    site = serve(store, network=None, contract=None)
    question = page(site, "/", 422)
    (choice,) = links(question, CONTRACT)
    document = page(site, choice.removeprefix("."))
    assert [row.split()[0] for row in rows(document)] == [OWNER]
    (target,) = links(document, OWNER)
    document = page(site, target.removeprefix("."))
    assert document.one("body").attributes["data-contract"] == CONTRACT
    document = page(site, links(document, "Older")[0].removeprefix(".."))
    assert len(rows(document)) == 10
    assert links(document, "All owners")[0].removeprefix("..") == choice.removeprefix(".")
    kept = {one.attributes["name"]: one.attributes["value"] for one in document.all("input", type="hidden")}
    assert kept == {"network": NETWORK, "contract": CONTRACT}
    nobody = page(site, f"/owners/{owner_number(2)}{choice.removeprefix('./')}", 404)
    assert links(nobody, "All owners")[0].removeprefix("..") == choice.removeprefix(".")


def test_an_owner_is_found_by_address(store: IndexStore, site: Api) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    answer = site.get(f"/owners?owner=%20{OWNER}%20&contract={CONTRACT}")
    assert answer.status == 303
    assert answer.headers["Location"] == f"owners/{OWNER}?contract={CONTRACT}"
    assert site.get("/owners?owner=").headers["Location"] == "./"


@pytest.mark.parametrize(
    "target",
    [
        "/owners?owner=SAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAASEED",
        "/owners/SAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAASEED",
        "/?cursor=SAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAASEED",
        "/?SEED=1",
        "/?contract=SEED",
    ],
)
def test_what_is_malformed_is_refused_and_never_repeated(store: IndexStore, site: Api, target: str) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    answer = site.get(target)
    assert answer.status == 422
    assert b"SEED" not in answer.body


def test_only_a_changed_page_is_sent_again(store: IndexStore, site: Api) -> None:
    fill(store, anchors_of(OWNER, [b""] * 2))
    for target in ("/", HERE):
        answer = site.get(target)
        etag = answer.headers["ETag"]
        assert Document(answer.body.decode()).one("body").attributes["data-etag"] == etag
        same = site.get(target, If_None_Match=etag)
        assert (same.status, same.body) == (304, b"")
        assert (same.headers["As-Of-Ledger"], same.headers["Lag"]) == ("5000", "7.500")
        assert same.headers["Followed"] == "closely"
    etags = [site.get(target).headers["ETag"] for target in ("/", HERE)]
    fill(store, anchors_of(OWNER, [b""] * 3)[2:])
    for target, etag in zip(("/", HERE), etags, strict=True):
        assert site.get(target, If_None_Match=etag).status == 200
