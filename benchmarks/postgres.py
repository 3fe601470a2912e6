"""The PostgreSQL backend at a hundred thousand memories and with sixteen agents at once, each figure beside
the least that it could be.

The floor of a figure is the same work by psycopg alone, in the same server and run; the baseline is what a
user would pick instead: PostgreSQL's own full-text search (GIN, ts_rank, any of the words). The server is one
of the benchmark's own, which synchronises the disk as it comes from the package.

    python -m benchmarks.postgres [--size 100000] [--agents 16] [--seed 1]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import multiprocessing
import re
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from benchmarks.baseline import OWNER, Corpus
from benchmarks.table import print_table
from mycelium_sdk import canonical
from mycelium_sdk.backends.postgres import PostgresBackend
from mycelium_sdk.records import Record
from tests.external.postgres.server import running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZE = 100_000
AGENTS = 16
SINGLE_WRITES = 200
QUESTIONS = 200
BASELINE_QUESTIONS = 20
TURNS = 40
"""So many times each agent remembers and recalls."""


class Figure(NamedTuple):
    """One line of the table, in `unit`."""

    name: str
    unit: str
    ours: float
    floor: float | None = None
    baseline: float | None = None

    def cells(self) -> tuple[str, ...]:
        """As text: ours, the floor and ours over it, the baseline and it over ours."""
        floor, baseline = ("", ""), ("", "")
        if self.floor is not None:
            floor = self._shown(self.floor), f"{self.ours / self.floor:.1f}"
        if self.baseline is not None:
            baseline = self._shown(self.baseline), f"{self.baseline / self.ours:.1f}"
        return (self.name, self._shown(self.ours), *floor, *baseline)

    def _shown(self, value: float) -> str:
        return f"{value:,.2f} {self.unit}"


class Bare:
    """A table and nothing else."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS public_bare.memories(id bigserial PRIMARY KEY, content text)"
        )

    @classmethod
    def made(cls, dsn: str) -> Bare:
        """The first one."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA public_bare")
        return cls(dsn)

    def fill(self, texts: Sequence[str]) -> None:
        """All at once, by COPY."""
        with (
            self._connection.cursor() as cursor,
            cursor.copy("COPY public_bare.memories(content) FROM STDIN") as copy,
        ):
            for text in texts:
                copy.write_row((text,))

    def add(self, text: str) -> None:
        """One, committed."""
        self._connection.execute("INSERT INTO public_bare.memories(content) VALUES (%s)", (text,))

    def get(self, numbers: Sequence[int]) -> None:
        """Some by their ids."""
        self._connection.execute(
            "SELECT id, content FROM public_bare.memories WHERE id = ANY(%s)", (list(numbers),)
        ).fetchall()

    def export(self) -> None:
        """All of them, in order and hashed."""
        digest = hashlib.sha256()
        statement = "COPY (SELECT content FROM public_bare.memories ORDER BY id) TO STDOUT"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for data in copy:
                digest.update(data)

    def index(self) -> None:
        """PostgreSQL's own full-text search."""
        self._connection.execute(
            "ALTER TABLE public_bare.memories ADD COLUMN found tsvector"
            " GENERATED ALWAYS AS (to_tsvector('english', content)) STORED"
        )
        self._connection.execute("CREATE INDEX ON public_bare.memories USING gin(found)")
        self._connection.execute("ANALYZE public_bare.memories")

    def search(self, question: str) -> None:
        """The best five of it, by any of the question's words."""
        words = " | ".join(re.findall(r"\w+", question))
        self._connection.execute(
            "SELECT id, content FROM public_bare.memories, to_tsquery('english', %s) query"
            " WHERE found @@ query ORDER BY ts_rank(found, query) DESC LIMIT 5",
            (words,),
        ).fetchall()

    def close(self) -> None:
        """Let go."""
        self._connection.close()


def measure(dsn: str, size: int, corpus: Corpus) -> list[Figure]:
    """One process, by itself."""
    texts = corpus.sentences(size + SINGLE_WRITES)
    some, more = texts[:size], texts[size:]
    questions = corpus.questions(some, QUESTIONS)
    bare = Bare.made(dsn)
    blob = canonical.encode(OWNER, map(Record, some))
    with PostgresBackend(OWNER, dsn) as store:
        store.count()  # connects
        loaded, filled = once(lambda: store.import_blob(blob)), once(lambda: bare.fill(some))
        exported = once(lambda: canonical.root(store.iter_blob()))
        floor = once(bare.export)
        root = each(lambda _: store.root(), range(20))
        first = once(lambda: store.recall(questions[0]))
        recalls = sorted(each(store.recall, questions))
        gets = each(lambda place: bare.get(range(place, place + 5)), range(QUESTIONS))
        writes, adds = alternating(more, store.remember, bare.add)
    started = statistics.median(each(lambda question: fresh(dsn, question), questions[:5]))
    bare.index()
    searches = each(bare.search, questions[:BASELINE_QUESTIONS])
    bare.close()
    middle = statistics.median
    return [
        Figure("import (floor: COPY)", "s", loaded / 1e3, filled / 1e3),
        Figure("export and root (floor: COPY, SHA-256)", "s", exported / 1e3, floor / 1e3),
        Figure("root, nothing written since", "ms", middle(root)),
        Figure("first recall, which indexes them", "s", first / 1e3),
        Figure(
            "recall, k = 5, p50 (floor: five by id)", "ms", middle(recalls), middle(gets), middle(searches)
        ),
        Figure("recall, k = 5, p99", "ms", recalls[int(len(recalls) * 0.99)], None, max(searches)),
        Figure("connect, recall, close", "ms", started),
        Figure("remember (floor: INSERT)", "ms", middle(writes), middle(adds)),
    ]


def fresh(dsn: str, question: str) -> None:
    """What an agent does that keeps nothing from one question to the next."""
    with PostgresBackend(OWNER, dsn) as store:
        store.recall(question)


def together(dsn: str, agents: int, work: Callable[..., list[float]]) -> tuple[float, list[float]]:
    """Operations per second of so many processes at once, and the milliseconds of each operation."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, concurrent.futures.ProcessPoolExecutor(agents, context) as pool:
        barrier = manager.Barrier(agents + 1)
        running = [pool.submit(work, dsn, number, barrier) for number in range(agents)]
        barrier.wait()
        start = time.perf_counter()
        times = sorted(taken for one in running for taken in one.result())
        return len(times) / (time.perf_counter() - start), times


def agent(dsn: str, number: int, barrier: Any) -> list[float]:
    """One agent of a fleet that shares a memory: it remembers and recalls in turn."""
    texts = Corpus(1000 + number).sentences(TURNS)
    with PostgresBackend(OWNER, dsn) as store:
        store.recall(texts[0])  # connects, and loads what every later recall uses
        barrier.wait()
        return [
            taken
            for text in texts
            for taken in (
                once(lambda text=text: store.remember(f"{number} {text}")),  # type: ignore[misc]
                once(lambda text=text: store.recall(text[:30])),  # type: ignore[misc]
            )
        ]


def bare_agent(dsn: str, number: int, barrier: Any) -> list[float]:
    """The least of it: insert, and get five by id."""
    texts = Corpus(1000 + number).sentences(TURNS)
    bare = Bare(dsn)
    barrier.wait()
    times = []
    for place, text in enumerate(texts):
        times.append(once(lambda text=text: bare.add(text)))  # type: ignore[misc]
        times.append(once(lambda place=place: bare.get(range(place, place + 5))))  # type: ignore[misc]
    bare.close()
    return times


def once(act: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e3


def each(act: Callable[[Any], object], arguments: Sequence[Any]) -> list[float]:
    """Milliseconds of a call with each."""
    return [once(lambda one=one: act(one)) for one in arguments]  # type: ignore[misc]


def alternating(
    arguments: Sequence[Any], one: Callable[[Any], object], other: Callable[[Any], object]
) -> tuple[list[float], list[float]]:
    """The same of two, in turn, so that both meet the same disk."""
    pairs = [(each(one, [argument])[0], each(other, [argument])[0]) for argument in arguments]
    return [first for first, _ in pairs], [second for _, second in pairs]


def run(size: int = SIZE, agents: int = AGENTS, seed: int = 1) -> None:
    """Print the tables."""
    with running_server(durable=True) as server:
        figures = measure(server.dsn, size, Corpus(seed))
        print_table(
            (f"{size:,} memories", "ours", "floor", "times", "full text", "ratio"),
            [figure.cells() for figure in figures],
        )
        rate, times = together(server.dsn, agents, agent)
        floor_rate, floor = together(server.dsn, agents, bare_agent)
    print()
    rows = [
        (
            name,
            f"{at:,.0f}",
            f"{statistics.median(taken):.1f} ms",
            f"{taken[int(len(taken) * 0.99)]:.1f} ms",
        )
        for name, at, taken in (("ours", rate, times), ("bare insert, five by id", floor_rate, floor))
    ]
    print_table((f"{agents} agents at once, one memory", "operations/s", "p50", "p99"), rows)


def main() -> None:
    """`run` with arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=SIZE, help="number of memories, at least 1000")
    parser.add_argument("--agents", type=int, default=AGENTS, help="number of processes at once")
    parser.add_argument("--seed", type=int, default=1, help="of the made-up text")
    arguments = parser.parse_args()
    if arguments.size < 1000 or arguments.agents < 1:
        parser.error("the size is below 1000, or there is no agent")
    run(arguments.size, arguments.agents, arguments.seed)


if __name__ == "__main__":
    main()
