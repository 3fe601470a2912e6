"""How quickly the command line starts, as a ratio to an interpreter that imports click and sqlite3."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.table import print_table, seconds, spread

RUNS = 15
PASSPHRASE_VARIABLE = "MYCELIUM_DECRYPT_KEY"  # noqa: S105
BARE = "import click, sqlite3"


def run() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "MYCELIUM_HOME": str(Path(folder, "home")),
            PASSPHRASE_VARIABLE: "benchmark",
        }
        texts = iter(range(10_000))

        def start(*arguments: str) -> None:
            subprocess.run(
                [sys.executable, *arguments],
                cwd=folder,
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        def mycelium(*arguments: str) -> None:
            start("-m", "mycelium_cli", *arguments)

        mycelium("memory", "remember", "the wallet is made by the first command")
        cases = {
            "python, click and sqlite3": lambda: start("-c", BARE),
            "mycelium --help": lambda: mycelium("--help"),
            "mycelium memory status --local": lambda: mycelium("memory", "status", "--local"),
            "mycelium memory remember": lambda: mycelium(
                "memory", "remember", f"a memory, number {next(texts)}"
            ),
            "mycelium memory recall": lambda: mycelium("memory", "recall", "which memory"),
        }
        taken = {name: seconds(case, runs=RUNS) for name, case in cases.items()}
    floor = statistics.median(taken["python, click and sqlite3"])
    print_table(
        ("start-up", "ms, median (range)", "ratio"),
        [(name, spread(times), f"{statistics.median(times) / floor:.2f}") for name, times in taken.items()],
    )


if __name__ == "__main__":
    run()
