"""Sixteen agents in processes of their own, on one memory: nothing lost, nothing doubled, one order."""

from __future__ import annotations

import multiprocessing
import random
from typing import TYPE_CHECKING

from mycelium_sdk.backends.arguments import checked_query
from mycelium_sdk.backends.postgres import PostgresBackend
from mycelium_sdk.testing import reference
from tests.external.postgres.conftest import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier

    from tests.external.postgres.server import Server

AGENTS = 16
TURNS = 12


def agent(dsn: str, schema: str, number: int, together: Barrier) -> None:
    """Remembers what all do, and what it alone does, forgets some of that, and finds what is left at once."""
    chance = random.Random(number)  # noqa: S311 - no secret
    with PostgresBackend(OWNER, dsn, schema=schema, pool_size=1) as store:
        together.wait()
        for turn in range(TURNS):
            shared = [f"shared note {place}" for place in range(TURNS)]
            chance.shuffle(shared)
            own = store.remember(f"agent{number} turn{turn}", [f"agent{number}"])
            gone = store.remember(f"agent{number} gone{turn}")
            again = store.remember_many([*shared, (f"agent{number} turn{turn}", [f"agent{number}"])])
            assert again[-1] == own
            assert store.forget(gone) == 1
            assert [hit["id"] for hit in store.recall(f"agent{number} turn{turn}", k=1)] == [own]
            assert store.recall(f"gone{turn}", tags=[f"agent{number}"]) == []


def test_sixteen_agents_at_once(opened: Callable[..., PostgresBackend], server: Server, schema: str) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    together = context.Barrier(AGENTS)
    agents = [
        context.Process(target=agent, args=(server.dsn, schema, number, together)) for number in range(AGENTS)
    ]
    for process in agents:
        process.start()
    for process in agents:
        process.join(240)
    assert [process.exitcode for process in agents] == [0] * AGENTS
    store = opened()
    contents = [one.record.content for one in store.iter_records()]
    expected = {f"shared note {place}" for place in range(TURNS)}
    expected |= {f"agent{number} turn{turn}" for number in range(AGENTS) for turn in range(TURNS)}
    assert sorted(contents) == sorted(expected)
    # Each was added once, and each that is gone was added once and forgotten once.
    assert store.change_counter() == len(expected) + 2 * AGENTS * TURNS
    sequences = [one.sequence for one in store.iter_records()]
    assert len(set(sequences)) == len(sequences)
    assert max(sequences) <= len(expected) + AGENTS * TURNS
    for question in ("shared note agent1", "turn3 of agent7", "note"):
        asked = checked_query(question, None, None)
        assert asked is not None
        found, wanted = store.candidates(asked, 10**6), reference.candidates(store.all_records(), asked)
        assert found.documents == wanted.documents == len(expected)
        assert found.average_length == wanted.average_length
        assert found.document_frequencies == wanted.document_frequencies
        words = {
            item.id: item.words for item in wanted.items if any(map(item.words.frequencies.get, asked.terms))
        }
        for item in found.items:
            if item.words.frequencies:
                same = words.pop(item.id)
                assert item.words.length == same.length
                assert all(
                    same.frequencies[term] == how_often for term, how_often in item.words.frequencies.items()
                )
        assert not words
    for number in range(AGENTS):
        assert len(store.recall(f"agent{number}", k=1000, tags=[f"agent{number}"])) == TURNS
