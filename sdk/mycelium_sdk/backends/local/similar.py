"""How similar a query's vector is to those of all memories, exactly; with numpy where it is there."""

from __future__ import annotations

import array
import bisect
import heapq
import importlib.util
import itertools
import math
import operator
from typing import TYPE_CHECKING, Any

from mycelium_sdk.backends.scoring import POOL, SURROUNDED_BY, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mycelium_sdk.backends.local.line import Line
    from mycelium_sdk.backends.scoring import Candidate

_MOST_PARTS = 32
_ABSENT = -1.0


class Table:
    """Vectors by id, as parts of little-endian float32. A table never changes, so threads share it."""

    def __init__(self, dimension: int, parts: tuple[tuple[array.array[int], bytes], ...] = ()) -> None:
        self.dimension = dimension
        self._parts = parts

    @property
    def last(self) -> int:
        """The highest id."""
        return max((ids[-1] for ids, _ in self._parts), default=0)

    def with_vectors(self, vectors: Mapping[int, bytes]) -> Table:
        """The table with these as well."""
        if not vectors:
            return self
        ids = sorted(vectors)
        part = array.array("q", ids), b"".join(vectors[number] for number in ids)
        parts = (*self._parts, part)
        if len(parts) > _MOST_PARTS:
            joined = array.array("q")
            for numbers, _ in parts:
                joined.extend(numbers)
            parts = ((joined, b"".join(data for _, data in parts)),)
        return Table(self.dimension, parts)

    def products(self, wanted: array.array[float]) -> dict[int, float]:
        """The dot product of each vector with one, by id."""
        found: dict[int, float] = {}
        for ids, data in self._parts:
            found.update(zip(ids, _products(data, wanted), strict=True))
        return found


class Similar:
    """A query's similarity to every memory of a table that passes its filters. `allowed`: those ids in order,
    None for all; `exists` says whether there is a memory with an id still."""

    def __init__(
        self,
        table: Table,
        wanted: array.array[float],
        allowed: Sequence[int] | None,
        exists: Callable[[int], bool],
    ) -> None:
        self._all = table.products(wanted)
        self._allowed = allowed
        self._exists = exists

    def leading(self, line: Line) -> list[int]:
        """The most similar, and the memories around them in their runs that pass the filters."""
        best = list(itertools.islice(self._best_first(POOL), POOL))
        found = dict.fromkeys(best)
        for number in best:
            for side in line.sides(number, SURROUNDED_BY):
                found.update(dict.fromkeys(near for near in side if self._passes(near)))
        return list(found)

    def alternating(self, others: Iterable[int]) -> Iterator[int]:
        """These, and all memories by similarity, in turn; each may come twice."""
        for one, other in itertools.zip_longest(others, self._best_first(len(self._all))):
            yield from (number for number in (one, other) if number is not None)

    def added(
        self, items: Sequence[Candidate], windows: Mapping[int, tuple[list[int], list[int]]]
    ) -> list[Candidate]:
        """The candidates with their similarities."""
        found = []
        for item in items:
            own = self._of(item.sequence)
            earlier, later = windows.get(item.sequence, ((), ()))
            around = surroundings(own, [self._of(n) for n in earlier], [self._of(n) for n in later])
            found.append(item._replace(similarity=own, surroundings=around))
        return found

    def _of(self, number: int) -> float:
        return self._all.get(number, _ABSENT)

    def _best_first(self, most: int) -> Iterator[int]:
        """Ids of memories that pass the filters, the most similar first; at least `most` if there are so
        many."""
        pairs: Iterable[tuple[float, int]] = zip(self._all.values(), self._all, strict=True)
        if self._allowed is not None:
            pairs = [(self._of(number), number) for number in self._allowed]
        # Few are gone as a rule, so twice as many as are needed are nearly always enough.
        ordered = heapq.nlargest(2 * most, pairs)
        return (number for _, number in ordered if self._exists(number))

    def _passes(self, number: int) -> bool:
        if self._allowed is None:
            return True
        place = bisect.bisect_left(self._allowed, number)
        return place < len(self._allowed) and self._allowed[place] == number


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """The dot product."""
    return math.fsum(map(operator.mul, one, other))


def _products(data: bytes, wanted: array.array[float]) -> Sequence[float]:
    if importlib.util.find_spec("numpy") is not None:
        import numpy as np

        rows: Any = np.frombuffer(data, dtype="<f4").reshape(-1, len(wanted))
        products: list[float] = (rows @ np.asarray(wanted, dtype=np.float32)).tolist()
        return products
    size = len(wanted)
    floats = array.array("f")
    floats.frombytes(data)
    return [dot(wanted, floats[first : first + size]) for first in range(0, len(floats), size)]
