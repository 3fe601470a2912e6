"""How similar a query's vector is to those of all memories, exactly; with numpy where it is there."""

from __future__ import annotations

import array
import functools
import heapq
import importlib.util
import itertools
import math
import operator
import sys
from typing import TYPE_CHECKING, Any, Protocol

from mycelium_sdk.backends.scoring import POOL, SURROUNDED_BY, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mycelium_sdk.backends.local.line import Line
    from mycelium_sdk.backends.scoring import Candidate

_MOST_PARTS = 32
_ABSENT = -1.0


class Table:
    """Vectors by id, in parts. A table never changes, so threads share it."""

    def __init__(self, dimension: int, parts: tuple[tuple[array.array[int], bytes], ...] = ()) -> None:
        self.dimension = dimension
        self.parts = parts
        """Ids, and their vectors one after the other as little-endian float32."""

    @property
    def last(self) -> int:
        """The highest id."""
        return max((ids[-1] for ids, _ in self.parts), default=0)

    def with_vectors(self, vectors: Mapping[int, bytes]) -> Table:
        """The table with these as well."""
        if not vectors:
            return self
        ids = sorted(vectors)
        part = array.array("q", ids), b"".join(vectors[number] for number in ids)
        parts = (*self.parts, part)
        if len(parts) > _MOST_PARTS:
            joined = array.array("q")
            for numbers, _ in parts:
                joined.extend(numbers)
            parts = ((joined, b"".join(data for _, data in parts)),)
        return Table(self.dimension, parts)


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
        products = _WithNumpy if _has_numpy() else _Plain
        self._products: _Products = products(table, wanted)
        self._allowed = allowed
        self._exists = exists

    def leading(self, line: Line) -> list[int]:
        """The most similar, and the memories around them in their runs."""
        found = dict.fromkeys(itertools.islice(self._best_first(POOL), POOL))
        for number in list(found):
            for side in line.sides(number, SURROUNDED_BY):
                found.update(dict.fromkeys(side))
        return list(found)

    def alternating(self, others: Iterable[int]) -> Iterator[int]:
        """These, and all memories by similarity, in turn; each may come twice."""
        for one, other in itertools.zip_longest(others, self._best_first(None)):
            yield from (number for number in (one, other) if number is not None)

    def added(
        self, items: Sequence[Candidate], windows: Mapping[int, tuple[list[int], list[int]]]
    ) -> list[Candidate]:
        """The candidates with their similarities."""
        around = {
            item.sequence: [side[:SURROUNDED_BY] for side in windows.get(item.sequence, ([], []))]
            for item in items
        }
        numbers = {number for sides in around.values() for side in sides for number in side}
        of = self._products.values(sorted(numbers.union(around)))
        found = []
        for item in items:
            own = of[item.sequence]
            earlier, later = ([of[number] for number in side] for side in around[item.sequence])
            found.append(item._replace(similarity=own, surroundings=surroundings(own, earlier, later)))
        return found

    def _best_first(self, most: int | None) -> Iterator[int]:
        """Ids of memories that pass the filters, the most similar first; at least `most` of them, if there
        are so many; None for all."""
        # Few are gone as a rule, so twice as many as are needed are nearly always enough.
        ordered = self._products.best(self._allowed, None if most is None else 2 * most)
        return filter(self._exists, ordered)


class _Products(Protocol):
    """The dot products of a vector with those of a table."""

    def values(self, numbers: Sequence[int]) -> dict[int, float]:
        """Of these ids, in order; the lowest there can be for those that have no vector."""

    def best(self, allowed: Sequence[int] | None, most: int | None) -> Sequence[int]:
        """The ids of the greatest, among those allowed; among equals the last first."""


class _Plain:
    def __init__(self, table: Table, wanted: array.array[float]) -> None:
        self._all: dict[int, float] = {}
        size = len(wanted)
        for ids, data in table.parts:
            floats = array.array("f")
            floats.frombytes(data)
            if sys.byteorder == "big":
                floats.byteswap()
            for place, number in enumerate(ids):
                self._all[number] = dot(wanted, floats[place * size : (place + 1) * size])

    def values(self, numbers: Sequence[int]) -> dict[int, float]:
        return {number: self._all.get(number, _ABSENT) for number in numbers}

    def best(self, allowed: Sequence[int] | None, most: int | None) -> Sequence[int]:
        found = self.values(allowed) if allowed is not None else self._all
        pairs = ((similarity, number) for number, similarity in found.items())
        ordered = heapq.nlargest(len(found) if most is None else most, pairs)
        return [number for _, number in ordered]


class _WithNumpy:
    def __init__(self, table: Table, wanted: array.array[float]) -> None:
        import numpy as np

        vector = np.asarray(wanted, dtype=np.float32)
        ids = [np.frombuffer(ids, dtype=np.int64) for ids, _ in table.parts]
        products = [
            np.frombuffer(data, dtype="<f4").reshape(-1, len(wanted)) @ vector for _, data in table.parts
        ]
        self._ids: Any = np.concatenate([np.zeros(0, dtype=np.int64), *ids])
        self._all: Any = np.concatenate([np.zeros(0, dtype=np.float32), *products])
        if np.any(self._ids[1:] < self._ids[:-1]):
            order = np.argsort(self._ids)
            self._ids, self._all = self._ids[order], self._all[order]

    def values(self, numbers: Sequence[int]) -> dict[int, float]:
        import numpy as np

        asked = np.asarray(numbers, dtype=np.int64)
        found = np.full(len(asked), _ABSENT)
        if self._ids.size:
            places = np.minimum(np.searchsorted(self._ids, asked), self._ids.size - 1)
            there = self._ids[places] == asked
            found[there] = self._all[places[there]]
        return dict(zip(numbers, found.tolist(), strict=True))

    def best(self, allowed: Sequence[int] | None, most: int | None) -> Sequence[int]:
        import numpy as np

        ids, products = self._ids, self._all
        if allowed is not None:
            kept = np.isin(ids, np.asarray(allowed, dtype=np.int64))
            ids, products = ids[kept], products[kept]
        if most is not None and most < ids.size:
            # All that are as great as the last of the best, so that ties are broken below.
            kept = products >= np.partition(products, ids.size - most)[ids.size - most]
            ids, products = ids[kept], products[kept]
        numbers: list[int] = ids[np.lexsort((ids, products))[::-1]][:most].tolist()
        return numbers


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """The dot product."""
    return math.fsum(map(operator.mul, one, other))


@functools.cache
def _has_numpy() -> bool:
    return importlib.util.find_spec("numpy") is not None
