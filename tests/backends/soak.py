"""Several processes write and read one memory at once, and are killed one after the other.

    python -m tests.backends.soak [--seconds 60] [--processes 4]

Whatever a process did it says on its standard output once it was acknowledged, so that what must be there at
the end is known. The suite runs the same for a few kills.
"""

# ruff: noqa: S311 - who is killed is chosen at random

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend

if TYPE_CHECKING:
    from collections.abc import Callable

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"

# Lines: `+ text` was remembered, `? text` is going to be forgotten, `- text` was.
WORKER = """
import random, select, sys
from mycelium_sdk.backends.local import LocalVectorBackend
owner, path, name = sys.argv[1:]
chance = random.Random(name)

def say(word, text):
    sys.stdout.write(f"{word} {text}\\n")
    sys.stdout.flush()

def told_to_end():
    return bool(select.select([sys.stdin], [], [], 0)[0])

mine = []
with LocalVectorBackend(owner, path) as store:
    number = 0
    while not told_to_end():
        number += 1
        if number % 10:
            texts = [f"worker {name} wrote n{number}"]
            store.remember(texts[0], [name], session=f"session {number // 20}")
        else:
            texts = [f"worker {name} wrote n{number}x{part}" for part in range(5)]
            store.remember_many(texts)
        for text in texts:
            say("+", text)
        mine += texts
        wanted = chance.choice(mine)
        hits = store.recall(wanted, k=3)
        assert wanted in [hit["content"] for hit in hits], (wanted, hits)
        if number % 7 == 0:
            gone = mine.pop(chance.randrange(len(mine)))
            number_of = {hit["content"]: hit["id"] for hit in store.recall(gone, k=3)}[gone]
            say("?", gone)
            assert store.forget(number_of, secure=number % 70 == 0) == 1
            say("-", gone)
        if number % 25 == 0:
            with store.export() as (chunks, _):
                for chunk in chunks:
                    pass
        if number % 50 == 0:
            report = store.check()
            assert report, report
"""


@dataclass
class Said:
    """What the workers said."""

    remembered: set[str] = field(default_factory=set)
    forgetting: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    lines: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take(self, line: str) -> None:
        """A line of a worker's."""
        word, _, text = line.rstrip("\n").partition(" ")
        with self.changed:
            {"+": self.remembered, "?": self.forgetting, "-": self.forgotten}[word].add(text)
            self.lines += 1
            self.changed.notify_all()

    def wait_for(self, more: int) -> None:
        """Until so many lines more were said. Raises `TimeoutError` after a minute: the workers hang."""
        with self.changed:
            wanted = self.lines + more
            if not self.changed.wait_for(lambda: self.lines >= wanted, timeout=60):
                raise TimeoutError("the workers do nothing any more")


class Worker:
    """A process, and the thread that hears what it says."""

    def __init__(self, path: Path, name: str, said: Said) -> None:
        self.killed = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, OWNER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._hearing = threading.Thread(target=self._hear, args=(said,))
        self._hearing.start()

    def _hear(self, said: Said) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # else it was killed in the middle of saying it
                said.take(line)

    def kill(self) -> None:
        """At once, wherever it is."""
        self.killed = True
        self._process.send_signal(signal.SIGKILL)

    def tell_to_end(self) -> None:
        """When it is done with what it does."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def ended(self) -> int:
        """Its exit status, once it has ended and everything it said was heard."""
        status = self._process.wait()
        self._hearing.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return status


@dataclass(frozen=True)
class Outcome:
    """How much happened, and what was wrong: nothing, if all is well."""

    remembered: int
    forgotten: int
    kills: int
    wrong: tuple[str, ...]


def soak(path: Path, pause: Callable[[Said], bool], *, processes: int = 4, seed: int = 1) -> Outcome:
    """Run the workers. Whenever `pause` returns True kill one and start another; end when it is False."""
    said, chance, kills = Said(), random.Random(seed), 0
    workers = [Worker(path, f"w{number}", said) for number in range(processes)]
    ended: list[Worker] = []
    try:
        while pause(said):
            victim = chance.randrange(processes)
            workers[victim].kill()
            ended.append(workers[victim])
            kills += 1
            workers[victim] = Worker(path, f"w{processes + kills}", said)
    finally:
        for worker in workers:
            worker.tell_to_end()
        wrong = [
            f"a worker ended with status {status}"
            for worker in (*ended, *workers)
            if (status := worker.ended()) != (-signal.SIGKILL if worker.killed else 0)
        ]
    wrong += _look(path, said, kills)
    return Outcome(len(said.remembered), len(said.forgotten), kills, tuple(wrong))


def _look(path: Path, said: Said, kills: int) -> list[str]:
    wrong = []
    with LocalVectorBackend(OWNER, path) as store:
        there = {stored.record.content for stored in store.iter_records()}
        report = store.check()
        if report.state is not Integrity.KEPT:
            wrong.append(f"the integrity check says {report}")
        if store.count() != len(there):
            wrong.append(f"the store counts {store.count()}, and holds {len(there)}")
        some = sorted(there)[:: max(1, len(there) // 200)]
        wrong.extend(
            f"not found: {text}"
            for text in some
            if text not in {hit["content"] for hit in store.recall(text, k=3)}
        )
    if lost := said.remembered - said.forgetting - there:
        wrong.append(f"{len(lost)} acknowledged memories are lost: {sorted(lost)[:3]}")
    if back := said.forgotten & there:
        wrong.append(f"{len(back)} forgotten memories are there: {sorted(back)[:3]}")
    if (
        len(unsaid := there - said.remembered) > 5 * kills
    ):  # what was written, and the writer killed before it said so
        wrong.append(f"{len(unsaid)} memories are there that nobody spoke of")
    with closing(sqlite3.connect(path)) as connection:
        if (answer := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            wrong.append(f"SQLite says {answer[:3]}")
    return wrong


def main() -> None:
    """Kill one every second, for as long as asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long")
    parser.add_argument("--processes", type=int, default=4, help="how many at once")
    arguments = parser.parse_args()
    until: float = time.monotonic() + arguments.seconds

    def pause(_: Said) -> bool:
        time.sleep(1)
        return time.monotonic() < until

    with tempfile.TemporaryDirectory() as folder:
        os.environ["MYCELIUM_HOME"] = str(Path(folder, "home"))
        outcome = soak(Path(folder, "memory.db"), pause, processes=arguments.processes)
    print(f"{outcome.remembered} remembered, {outcome.forgotten} forgotten, {outcome.kills} killed")
    sys.exit("\n".join(outcome.wrong) or 0)


if __name__ == "__main__":
    main()
