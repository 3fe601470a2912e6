"""What a user would otherwise have: a store that compares every vector; and made-up text to try stores with.

The store is one as many small agents have it: SQLite as it comes (rollback journal, a commit for each write),
a vector of 256 dimensions per memory made by hashing words with MD5, a recall that reads and compares every
vector, and an export that loads, sorts and dumps everything.
"""

from __future__ import annotations

import array
import hashlib
import json
import math
import operator
import random
import re
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
"""Whose the memories of the benchmarks are."""

DIMENSIONS = 256

_words = re.compile(r"[a-z0-9]+")


class FullScan:
    """The baseline."""

    def __init__(self, path: Path | str) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS memories(id INTEGER PRIMARY KEY, content TEXT, vector BLOB)"
        )
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

    def root(self) -> bytes:
        """SHA-256 of the canonical blob of all."""
        rows = self._connection.execute("SELECT content FROM memories")
        records = sorted(({"content": content, "tags": []} for (content,) in rows), key=_content)
        blob = json.dumps({"owner": OWNER, "records": records}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(blob.encode("ascii")).digest()

    def load(self, blob: Path) -> None:
        """Take over the records of a blob."""
        self.remember_many(map(_content, json.loads(blob.read_bytes())["records"]))

    def count(self) -> int:
        """How many there are."""
        return int(self._connection.execute("SELECT count(*) FROM memories").fetchone()[0])

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


def _content(record: dict[str, str]) -> str:
    return record["content"]


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
