"""Recall by the service's own search: one request, the one scorer, and only genuine memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import Tampered
from tests.supermemory.conftest import KEY, OWNER

if TYPE_CHECKING:
    from mycelium_sdk.testing.supermemory_server import SupermemoryServer
    from tests.supermemory.conftest import Open

TEXTS = [
    ("apples are red", ["fruit"]),
    ("green apples, sour apples", ["fruit", "sour"]),
    ("the sky is blue", []),
    ("https://example.org/apples", []),
    ("apples\0nul", []),
    ("many apples " * 2000 + "end", ["long"]),
    ("long and odd apples\0 " * 2000, []),
]


def test_one_search_finds_every_form_of_memory(opened: Open, server: SupermemoryServer) -> None:
    opened().remember_many(TEXTS, session="s")
    store = opened()
    before = len(server.requests)
    hits = store.recall("apples", k=20)
    assert {hit["content"] for hit in hits} == {text for text, _ in TEXTS if "apples" in text}
    assert all(0 < hit["score"] <= 1 for hit in hits)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert {hit["session"] for hit in hits} == {"s"}
    # Only the texts that no metadata hold are asked for.
    searches = [path for _, path in server.requests[before:] if path.endswith("/search")]
    assert len(searches) == 1
    short = opened()
    before = len(server.requests)
    assert short.recall("sky blue")[0]["content"] == "the sky is blue"
    assert len(server.requests) - before == 1


def test_filters_and_pages(opened: Open) -> None:
    opened().remember_many(TEXTS)
    store = opened()
    assert {hit["content"] for hit in store.recall("apples", tags=["fruit"])} == {TEXTS[0][0], TEXTS[1][0]}
    assert [hit["content"] for hit in store.recall("apples", tags=["sour", "fruit"])] == [TEXTS[1][0]]
    assert store.recall("apples", session="other") == []
    everything = store.recall("apples", k=10)
    assert [
        hit for start in range(0, 6, 2) for hit in store.recall("apples", k=2, offset=start)
    ] == everything
    assert store.recall("nothing of that") == store.recall(" ") == store.recall("\u200b") == []


def test_a_write_is_found_before_the_service_has_processed_it(
    opened: Open, server: SupermemoryServer
) -> None:
    store = opened()
    store.remember("done before")
    server.hold()
    wanted = store.remember("fresh thing", ["tag"])
    assert [hit["id"] for hit in store.recall("fresh")] == [wanted]
    assert [hit["id"] for hit in store.recall("tag")] == [wanted]
    assert store.recall("fresh", tags=["other"]) == []
    store.forget(wanted)
    assert store.recall("fresh") == []


def test_what_is_not_ours_is_not_found(opened: Open, server: SupermemoryServer) -> None:
    opened().remember("our apples")
    shelf = server.shelf(KEY)
    shelf.add(OWNER, None, "somebody's apples", {})
    shelf.add(OWNER, None, "another owner's apples", {"myc_kind": "record", "myc_owner": "G", "myc_id": "x"})
    shelf.add("another namespace", None, "their apples", {})
    store = opened()
    store.forget(store.remember("apples to forget"))
    assert [hit["content"] for hit in store.recall("apples forgotten here")] == ["our apples"]


@pytest.mark.parametrize("edit", [{"myc_content": '"apples, edited"'}, {"myc_copies": 0}, {"myc_tags": "[]"}])
def test_an_edited_memory_is_never_served(
    opened: Open, server: SupermemoryServer, edit: dict[str, str | int]
) -> None:
    opened().remember("our apples", ["tag"])
    shelf = server.shelf(KEY)
    shelf.update(next(iter(shelf.docs.values())), None, edit)
    with pytest.raises(Tampered, match="not as it was remembered"):
        opened().recall("apples")


def test_the_order_is_of_words_and_of_the_services_similarity(opened: Open) -> None:
    opened().remember_many(["a walk in the park with the dog", "the dog", "park", "dogs walked in parks"])
    assert opened().recall("walk the dog in the park")[0]["content"].startswith("a walk")
