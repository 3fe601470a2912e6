"""An indexer that lies: each way is caught, by the client and by the memory, and the indexer is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mycelium_indexer.api.answers import anchor_as_json
from mycelium_sdk.errors import Fork, Rollback, Tampered, VerificationError, WrongOwner
from mycelium_sdk.strkey import encode_account
from tests.indexer.api.ground import Api, anchors_of

from .conftest import VERSIONS, Ground

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER = encode_account(b"another one's anchors are these.")


def _omit(items: list[dict[str, Any]]) -> None:
    del items[2]


def _omit_the_newest(items: list[dict[str, Any]]) -> None:
    del items[0]


def _omit_the_oldest(items: list[dict[str, Any]]) -> None:
    del items[-1]


def _reorder(items: list[dict[str, Any]]) -> None:
    items[2], items[3] = items[3], items[2]


def _repeat(items: list[dict[str, Any]]) -> None:
    items.insert(2, items[2])


def _alter(items: list[dict[str, Any]]) -> None:
    items[2]["root"] = "ab" * 32


def _alter_the_address(items: list[dict[str, Any]]) -> None:
    items[2]["uri_hex"] = b"https://elsewhere.example/".hex()


def _alter_the_first(items: list[dict[str, Any]]) -> None:
    items[-1]["previous"] = "00" * 32


def _alter_the_newest(items: list[dict[str, Any]]) -> None:
    items[0]["acl_hex"] = "00"


def _renumber(items: list[dict[str, Any]]) -> None:
    for item in items[1:]:
        item["version"] -= 1
    del items[-1]


def _of_another_owner(items: list[dict[str, Any]]) -> None:
    items[2]["owner"] = OTHER


def _ahead(items: list[dict[str, Any]]) -> None:
    items.insert(0, {**items[0], "version": VERSIONS + 1})


def _as_an_older_contract(items: list[dict[str, Any]]) -> None:
    for item in items[1:]:
        item["previous"] = item["timestamp"] = None


LIES: dict[str, tuple[Callable[[list[dict[str, Any]]], None], type[VerificationError], str]] = {
    "omits one": (_omit, Tampered, "leaves out version 3"),
    "omits the newest": (_omit_the_newest, Tampered, "leaves out version 5"),
    "omits the oldest": (_omit_the_oldest, Tampered, "leaves out version 1"),
    "reorders": (_reorder, Tampered, "leaves out version 3"),
    "repeats": (_repeat, Tampered, "leaves out version 2"),
    "alters a root": (_alter, Tampered, "version 3 of the history is not what version 4 commits to"),
    "alters an address": (_alter_the_address, Tampered, "version 3 of the history is not what version 4"),
    "alters the first": (_alter_the_first, Tampered, "version 1 of the history is not what version 2"),
    "alters the newest": (_alter_the_newest, Fork, "another version 5"),
    "renumbers": (_renumber, Tampered, "leaves out version 4"),
    "another owner's": (_of_another_owner, WrongOwner, "another owner's anchor"),
    "ahead of the chain": (_ahead, Rollback, "has version 6 .* the chain serves version 5"),
    "no proof": (_as_an_older_contract, Tampered, "from version 5 to 4"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_false_history_is_caught(anchored: Ground, honest: str, lie: str) -> None:
    forge, kind, said = LIES[lie]

    def change(path: str, document: Any) -> object:
        if path.endswith("/history"):
            forge(document["items"])
        return document

    url = anchored.mirror(honest, change)
    name = f"the indexer at {url.removeprefix('http://')}"
    with pytest.raises(kind, match=said) as caught:
        anchored.client(url).history(anchored.latest())
    assert caught.value.message.startswith(name)
    assert "this indexer" in (caught.value.hint or "") or "the indexer invents" in (caught.value.hint or "")
    assert "[indexer] url" in (caught.value.hint or "")
    anchored.url = url
    try:
        memory = anchored.memory("deceived")
    finally:
        anchored.url = None
    for call in (memory.history, lambda: memory.diff(2, 3), lambda: memory.rehydrate(version=2)):
        with pytest.raises(kind, match=said) as caught:
            call()
        assert caught.value.message.startswith(name)
        assert caught.value.exit_code == 7
    assert memory.count() == 0


def test_one_that_says_never_anchored_is_caught(anchored: Ground, honest: str) -> None:
    stranger = encode_account(b"somebody who has never anchored.")

    def change(path: str, document: Any) -> object:
        if anchored.owner not in path:
            return document
        return 404, unknown

    unknown = Api(int(honest.rpartition(":")[2])).get(f"/memory/{stranger}").json
    url = anchored.mirror(honest, change)
    latest = anchored.latest()
    client = anchored.client(url)
    assert client.latest(anchored.owner) is None
    with pytest.raises(Tampered, match=r"leaves out version 5 .* everything up to ledger"):
        client.compare(latest.anchor, ledger=latest.ledger)
    with pytest.raises(Tampered, match="leaves out version 5"):
        client.history(latest)
    # Where it did not look it need not know.
    ledger = latest.ledger
    assert ledger is not None
    for admitted in ({"missed_ledgers": [{"first": ledger, "last": ledger}]}, {"first_ledger": ledger + 1}):
        unknown.update(admitted)
        assert client.compare(latest.anchor, ledger=ledger) is None
        assert len(client.history(latest).anchors) == 1
        unknown.update(missed_ledgers=[], first_ledger=1)


def test_a_false_latest_is_caught_when_it_is_compared(anchored: Ground, honest: str) -> None:
    latest = anchored.latest()
    forged: dict[str, Any] = {}
    url = anchored.mirror(honest, lambda _, document: document | forged)
    client = anchored.client(url)
    for forged, kind in (  # noqa: B007 - the server reads it
        ({"root": "cd" * 32}, Fork),
        ({"version": VERSIONS + 1}, Rollback),
        ({"version": VERSIONS - 1}, Tampered),
        ({"owner": OTHER}, WrongOwner),
    ):
        with pytest.raises(kind, match=r"^the indexer at 127\.0\.0\.1:"):
            client.compare(latest.anchor, ledger=latest.ledger, again=anchored.contract().get_anchor)


def test_a_stale_answer_is_no_lie_without_the_ledger(anchored: Ground, honest: str) -> None:
    """What was written when is the caller's to say: without it, an older version is only older."""
    found = anchored.client(anchored.mirror(honest, lambda _, doc: doc | {"version": 1})).compare(
        anchored.latest().anchor
    )
    assert found is not None
    assert found.past.anchor.version == 1


def test_one_that_seems_behind_is_held_to_what_the_chain_commits_to(anchored: Ground, honest: str) -> None:
    """What it serves agrees with itself, and not with the versions above, which the chain's events give."""
    forged = [anchor_as_json(one) for one in reversed(anchors_of(anchored.owner, [b"", b"", b""]))]
    url = anchored.mirror(honest, lambda _, doc: doc | {"items": forged, "as_of_ledger": 1, "next": None})
    assert len(anchored.client(url).history(anchored.latest()).anchors) == 1
    anchored.url = url
    try:
        memory = anchored.memory("deceived")
    finally:
        anchored.url = None
    with pytest.raises(Tampered, match=r"^the indexer at .* version 3 of the history is not what version 4"):
        memory.history()


def test_one_that_seems_behind_must_agree_with_itself(anchored: Ground, honest: str) -> None:
    def change(_: str, document: Any) -> object:
        items = document["items"][2:]
        items[1]["root"] = "ab" * 32
        return document | {"items": items, "as_of_ledger": 1}

    with pytest.raises(Tampered, match=r"^the indexer at .* version 2 of the history is not what version 3"):
        anchored.client(anchored.mirror(honest, change)).history(anchored.latest())
