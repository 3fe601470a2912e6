"""Remember and recall of the local store against what a user would otherwise have, and what its import costs.

The baseline is a store as many small agents have one: SQLite as it comes (rollback journal, a commit for
each write), a vector of 256 dimensions per memory made by hashing words with MD5, and a recall that reads and
compares every vector. Both run on the same memories and questions, so the ratios can be compared anywhere.

    python -m benchmarks.memory [--sizes 1000 10000] [--seed 1]
"""

from __future__ import annotations

import argparse
import array
import contextlib
import functools
import hashlib
import math
import operator
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.table import print_table, seconds
from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
SIZES = (1_000, 10_000)
DIMENSIONS = 256
SINGLE_WRITES = 100
QUESTIONS = 50
STARTS = 15

T = TypeVar("T")

_words = re.compile(r"[a-z0-9]+")


class FullScan:
    """The baseline."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.execute("CREATE TABLE memories(id INTEGER PRIMARY KEY, content TEXT, vector BLOB)")
        self._connection.commit()

    def remember(self, content: str) -> None:
        """One memory, committed."""
        self.remember_many([content])

    def remember_many(self, contents: Iterable[str]) -> None:
        """Many memories, committed together."""
        rows = [(content, self._vector(content).tobytes()) for content in contents]
        self._connection.executemany("INSERT INTO memories(content, vector) VALUES (?, ?)", rows)
        self._connection.commit()

    def recall(self, query: str, k: int = 5) -> list[str]:
        """The most similar of all."""
        wanted = self._vector(query)
        scored = []
        for number, content, stored in self._connection.execute("SELECT id, content, vector FROM memories"):
            vector = array.array("f")
            vector.frombytes(stored)
            scored.append((sum(map(operator.mul, wanted, vector)), -number, content))
        scored.sort(reverse=True)
        return [content for _, _, content in scored[:k]]

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @staticmethod
    def _vector(text: str) -> array.array[float]:
        values = [0.0] * DIMENSIONS
        for word in _words.findall(text.lower()):
            digest = hashlib.md5(word.encode(), usedforsecurity=False).digest()
            values[int.from_bytes(digest[:4], "big") % DIMENSIONS] += 1.0 if digest[4] & 1 else -1.0
        length = math.sqrt(sum(value * value for value in values)) or 1.0
        return array.array("f", [value / length for value in values])


class Corpus:
    """Sentences of made-up words, common and rare as in real text."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        self._words = sorted(
            {"".join(self._random.choices(syllables, k=self._random.randint(2, 4))) for _ in range(6000)}
        )
        self._random.shuffle(self._words)
        self._weights = [1.0 / (rank + 3) for rank in range(len(self._words))]

    def sentences(self, number: int) -> list[str]:
        """Distinct texts of 8 to 30 words."""
        return [f"{' '.join(self._choose(8, 30))} {place}" for place in range(number)]

    def questions(self, sentences: Sequence[str], number: int) -> list[str]:
        """Four words of a memory each, within a question."""
        chosen = self._random.sample(sentences, number)
        return [f"What about {' '.join(self._random.sample(text.split()[:-1], 4))}?" for text in chosen]

    def _choose(self, least: int, most: int) -> list[str]:
        return self._random.choices(self._words, self._weights, k=self._random.randint(least, most))


def once(action: Callable[[], object]) -> float:
    """How long one call takes, in milliseconds."""
    return seconds(action, runs=1, warm=0)[0] * 1000


def typical(inputs: Sequence[T], *actions: Callable[[T], object]) -> list[float]:
    """The median of each action over the inputs, in milliseconds; in turns, since disks have moods."""
    taken = [[once(functools.partial(action, value)) for action in actions] for value in inputs]
    return [statistics.median(times) for times in zip(*taken, strict=True)]


class DurablePage:
    """A page appended and synchronised: the least that a durable write can cost on this disk."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)

    def write(self, _: object) -> None:
        """One page."""
        self._file.write(b"x" * 4096)
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def compare(size: int, corpus: Corpus, folder: Path) -> None:
    """Both stores with `size` memories."""
    texts = corpus.sentences(size + SINGLE_WRITES)
    filling, single = texts[:size], texts[size:]
    questions = corpus.questions(filling, QUESTIONS)
    scanned = questions[: max(5, min(QUESTIONS, 100_000 // size))]
    with (
        LocalVectorBackend(OWNER, folder / "ours.db") as ours,
        contextlib.closing(FullScan(folder / "scan.db")) as scan,
        contextlib.closing(DurablePage(folder / "page")) as page,
    ):
        many = once(lambda: ours.remember_many(filling)), once(lambda: scan.remember_many(filling))
        first = once(lambda: ours.recall(questions[0]))
        remember, scan_remember, floor = typical(single, ours.remember, scan.remember, page.write)
        (recall,) = typical(questions, ours.recall)
        (scan_recall,) = typical(scanned, scan.recall)
        export = once(lambda: canonical.root(ours.iter_blob()))
        blob = ours.export_blob()
        imported = once(lambda: ours.import_blob(blob))
    rows: list[tuple[str, float, float | None]] = [
        ("remember_many, all of them", *many),
        ("first recall, which indexes them", first, None),
        ("remember, one durable write", remember, scan_remember),
        ("  of that a bare durable page", floor, None),
        ("recall, k = 5", recall, scan_recall),
        ("export and root", export, None),
        ("import of the same blob", imported, None),
    ]
    print_table(
        (f"{size:,} memories, ms (median of single calls)", "ours", "full scan", "ratio"),
        [
            (name, f"{mine:.3f}", *(("", "") if other is None else (f"{other:.3f}", f"{other / mine:.1f}")))
            for name, mine, other in rows
        ],
    )
    print()


def importing() -> None:
    """What a process pays for the store before it does anything."""
    store = "import click, mycelium_sdk.backends.local"
    cases = {
        "python, click and sqlite3": "import click, sqlite3",
        "with what remember needs": store,
        "with what recall needs": f"{store}.search; mycelium_sdk.backends.local.search.terms('words')",
    }
    taken = {}
    for name, code in cases.items():
        start = functools.partial(subprocess.run, [sys.executable, "-c", code], check=True)
        taken[name] = statistics.median(seconds(start, runs=STARTS))
    floor = taken["python, click and sqlite3"]
    print_table(
        ("starting, whole process", "ms, median", "ratio"),
        [(name, f"{took * 1000:.1f}", f"{took / floor:.2f}") for name, took in taken.items()],
    )


def run(sizes: Sequence[int] = SIZES, seed: int = 1) -> None:
    """Print the tables."""
    corpus = Corpus(seed)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            compare(size, corpus, Path(folder))
    importing()


def main() -> None:
    """`run` with arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="numbers of memories, each at least 100"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the made-up text")
    arguments = parser.parse_args()
    if min(arguments.sizes) < 100:
        parser.error("a size is below 100")
    run(arguments.sizes, arguments.seed)


if __name__ == "__main__":
    main()
