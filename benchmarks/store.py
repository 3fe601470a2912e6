"""The local store from a thousand memories to a million, each figure beside the least that it could be.

The floor of a figure is the same work by SQLite, hashlib or the disk alone, in the same run; the baseline is
the store of `benchmarks.baseline`. So ratios can be compared anywhere, whatever the machine.

    python -m benchmarks.store [--sizes 1000 10000 100000 1000000] [--seed 1]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from benchmarks.baseline import OWNER, Corpus, FullScan
from benchmarks.floors import BareExport, BareMatch, BarePage, BareTable, opened_bare
from benchmarks.table import print_table
from mycelium_sdk import canonical
from mycelium_sdk.backends.local import LocalVectorBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = (1_000, 10_000, 100_000)
SINGLE_WRITES = 200
QUESTIONS = 300
RANKED = 50
"""So many questions are put to SQLite's own ranking."""
SCANNED_TOGETHER = 300_000
"""So many vectors, about, are compared for one figure of the baseline."""
MAX_BLOB_BYTES = 1 << 32

T = TypeVar("T")


class Figure(NamedTuple):
    """One line of the table. `unit` is `ms`, `s`, `B` or `MB`."""

    name: str
    unit: str
    ours: float
    floor: float | None = None
    baseline: float | None = None

    def cells(self) -> tuple[str, ...]:
        """As text: ours, the floor and ours over it, the baseline and it over ours."""
        return (
            self.name,
            f"{self.ours:,.3f} {self.unit}",
            "" if self.floor is None else f"{self.floor:,.3f}",
            "" if self.floor is None else f"{self.ours / self.floor:.1f}",
            "" if self.baseline is None else f"{self.baseline:,.3f}",
            "" if self.baseline is None else f"{self.baseline / self.ours:.1f}",
        )


def once(action: Callable[[], object]) -> float:
    """How long one call takes, in seconds."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def each(inputs: Sequence[T], *actions: Callable[[T], object]) -> list[list[float]]:
    """Milliseconds of each action over the inputs; in turns, since disks have moods."""
    taken = [[once(functools.partial(action, value)) * 1000 for action in actions] for value in inputs]
    return [list(times) for times in zip(*taken, strict=True)]


def import_in_a_process(blob: Path, path: Path, program: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a new process that runs `program` with the names `blob` and `path`."""
    code = (
        "import sys, time; from pathlib import Path; blob, path = map(Path, sys.argv[1:3])\n"
        "from benchmarks import floors, store\n"
        f"start = time.perf_counter(); {program}; print(time.perf_counter() - start, store.peak_memory())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(blob), str(path)], check=True, capture_output=True, text=True
    ).stdout.split()
    return float(shown[0]), float(shown[1])


def peak_memory() -> float:
    """Megabytes that this process had at most. Of Linux itself: what `resource` says counts what the process
    was before it became this program."""
    status = Path("/proc/self/status")
    if status.exists():
        kilobytes = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(kilobytes.split()[1]) / 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def load(path: Path, blob: Path) -> int:
    """Import a blob into our store."""
    with LocalVectorBackend(OWNER, path) as ours, blob.open("rb") as source:
        return ours.import_blob(source, max_bytes=MAX_BLOB_BYTES)


def scan_load(path: Path, blob: Path) -> None:
    """Import a blob into the baseline."""
    with contextlib.closing(FullScan(path)) as scan:
        scan.load(blob)


def opened_scan(path: Path) -> None:
    """Open the baseline, ask it the same, close it."""
    with contextlib.closing(FullScan(path)) as scan:
        scan.count()


def opened(path: Path) -> None:
    """Open our store, ask it something, close it."""
    with LocalVectorBackend(OWNER, path) as ours:
        ours.count()


def measure(size: int, corpus: Corpus, folder: Path) -> list[Figure]:
    """All figures with `size` memories."""
    texts = corpus.sentences(size + 2 * SINGLE_WRITES)
    filling, single = texts[:size], texts[size:]
    questions = corpus.questions(filling, min(QUESTIONS, size))
    figures: list[Figure] = []
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(LocalVectorBackend(OWNER, folder / "ours.db"))
        bare = stack.enter_context(contextlib.closing(BareTable(folder / "bare.db", "FULL")))
        scan = stack.enter_context(contextlib.closing(FullScan(folder / "scan.db")))
        figures.append(
            Figure(
                "remember_many, all of them", "s",
                once(lambda: ours.remember_many(filling)), once(lambda: bare.add_many(filling)),
                once(lambda: scan.remember_many(filling)),
            )
        )  # fmt: skip
        figures += _single_writes(single, ours, bare, scan, folder)
        figures += _blob(ours, scan, folder)
        figures += _recall(questions, ours, scan, filling)
    figures.append(
        Figure(
            "bytes per memory, indexed (floor: text)", "B", (folder / "ours.db").stat().st_size / size,
            sum(len(text.encode()) for text in filling) / size, (folder / "scan.db").stat().st_size / size,
        )
    )  # fmt: skip
    times = each(
        range(20),
        lambda _: opened(folder / "ours.db"),
        lambda _: opened_bare(folder / "ours.db"),
        lambda _: opened_scan(folder / "scan.db"),
    )
    figures.append(Figure("open, count, close", "ms", *map(statistics.median, times)))
    return figures


def _single_writes(
    texts: Sequence[str], ours: LocalVectorBackend, bare: BareTable, scan: FullScan, folder: Path
) -> list[Figure]:
    with contextlib.closing(BarePage(folder / "page")) as page:
        durable = each(texts[:SINGLE_WRITES], ours.remember, bare.add, page.write, scan.remember)
    medians = [statistics.median(times) for times in durable]
    with (
        LocalVectorBackend(OWNER, folder / "ours.db", durability="process") as fast,
        contextlib.closing(BareTable(folder / "quick.db", "NORMAL")) as bare_fast,
    ):
        process = [
            statistics.median(times) for times in each(texts[SINGLE_WRITES:], fast.remember, bare_fast.add)
        ]
    return [
        Figure("remember, durable (floor: SQLite)", "ms", medians[0], medians[1], medians[3]),
        Figure("remember, durable (floor: fdatasync)", "ms", medians[0], medians[2], medians[3]),
        Figure("remember, durability=process", "ms", *process),
    ]


def _blob(ours: LocalVectorBackend, scan: FullScan, folder: Path) -> list[Figure]:
    blob = folder / "blob.json"
    with blob.open("wb") as file:
        file.writelines(ours.iter_blob())
    with ours.snapshot() as view:
        bare = BareExport(folder / "ready.db", (stored.fragment for stored in view.stored()))
    with contextlib.closing(bare):
        exports = each(range(3), lambda _: canonical.root(ours.iter_blob()), lambda _: bare.run())
    ours.root()
    kept = each(range(20), lambda _: ours.root())[0]
    imported = import_in_a_process(blob, folder / "again.db", "store.load(path, blob)")
    floor = import_in_a_process(blob, folder / "bare again.db", "floors.bare_import(path, blob)")
    scanned = import_in_a_process(blob, folder / "scan again.db", "store.scan_load(path, blob)")
    dumped = once(scan.root)
    data = blob.read_bytes()
    hashing = once(lambda: hashlib.sha256(data).digest())
    return [
        Figure(
            "export and root (floor: SQLite, SHA-256)", "s",
            min(exports[0]) / 1000, min(exports[1]) / 1000, dumped,
        ),
        Figure("export and root (floor: SHA-256 alone)", "s", min(exports[0]) / 1000, hashing, dumped),
        Figure("root, nothing written since", "ms", statistics.median(kept)),
        Figure("import (floor: json, SQLite)", "s", imported[0], floor[0], scanned[0]),
        Figure("import, peak memory", "MB", imported[1], floor[1], scanned[1]),
        Figure("check every row's seal", "s", once(ours.check)),
    ]  # fmt: skip


def _recall(
    questions: Sequence[str], ours: LocalVectorBackend, scan: FullScan, filling: Sequence[str]
) -> list[Figure]:
    first = once(lambda: ours.recall(questions[0]))
    times = sorted(each(questions, ours.recall)[0])
    with contextlib.closing(BareMatch(filling)) as bare:
        matched = sorted(each(questions, bare.any_matches)[0])
        ranked = sorted(each(questions[:RANKED], bare.best_matches)[0])
    some = questions[: max(3, min(20, SCANNED_TOGETHER // len(filling)))]
    scanned = sorted(each(some, scan.recall)[0])
    p50, p99, middle = statistics.median(times), _p99(times), statistics.median(scanned)
    return [
        Figure("first recall, which indexes them", "s", first),
        Figure("recall, k = 5, p50 (floor: any FTS5 matches)", "ms", p50, statistics.median(matched), middle),
        Figure(
            "recall, k = 5, p50 (beside: best FTS5 matches)", "ms", p50, statistics.median(ranked), middle
        ),
        Figure("recall, k = 5, p99 (floor: any FTS5 matches)", "ms", p99, _p99(matched), scanned[-1]),
    ]


def _p99(times: Sequence[float]) -> float:
    """Of times in order."""
    return times[int(len(times) * 0.99)]


def synchronisations() -> None:
    """How often a durable write waits for the disk, as the kernel counts it."""
    if shutil.which("strace") is None:
        print("strace is not installed, so synchronisations are not counted")
        return
    code = (
        "import sys; from mycelium_sdk.backends.local import LocalVectorBackend\n"
        "with LocalVectorBackend(sys.argv[1], sys.argv[2]) as store:\n"
        "    for number in range(int(sys.argv[3])): store.remember(f'memory {number}')"
    )
    counts = []
    for number in (100, 200):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "calls")
            subprocess.run(
                ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", log,
                 sys.executable, "-c", code, OWNER, Path(folder, "memory.db"), str(number)],
                check=True, env={**os.environ, "MYCELIUM_HOME": str(Path(folder, "home"))},
            )  # fmt: skip
            counts.append(log.read_text().count("sync("))
    print(f"synchronisations for each durable remember: {(counts[1] - counts[0]) / 100:.2f} (strace)")


def run(sizes: Sequence[int] = SIZES, seed: int = 1) -> None:
    """Print the tables."""
    before = os.environ.get("MYCELIUM_HOME")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MYCELIUM_HOME"] = str(Path(folder, "home"))
            try:
                figures = measure(size, Corpus(seed), Path(folder))
            finally:
                os.environ.pop("MYCELIUM_HOME")
                if before is not None:
                    os.environ["MYCELIUM_HOME"] = before
        print_table(
            (f"{size:,} memories", "ours", "floor", "times", "full scan", "ratio"),
            [figure.cells() for figure in figures],
        )
        print(flush=True)
    synchronisations()


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
