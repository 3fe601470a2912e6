"""Timing and printing shared by the benchmarks."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["print_table", "seconds", "spread"]


def seconds(action: Callable[[], object], *, runs: int, warm: int = 1) -> list[float]:
    """How long each of `runs` calls took, in seconds, after `warm` calls that are not counted."""
    for _ in range(warm):
        action()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return taken


def spread(taken: Sequence[float]) -> str:
    """Median and range in milliseconds, as text."""
    return f"{statistics.median(taken) * 1000:.2f} ({min(taken) * 1000:.2f} to {max(taken) * 1000:.2f})"


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with aligned columns."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, ["-" * width for width in widths], *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
