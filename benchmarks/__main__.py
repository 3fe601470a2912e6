"""Runs every benchmark: `make bench`, or `python -m benchmarks [name ...]`.

`recall_quality` takes the LoCoMo file from the environment: `make bench LOCOMO=locomo10.json`.
"""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = (
    "contract_costs",
    "startup",
    "anchoring",
    "portability",
    "store",
    "recall_quality",
    "supermemory",
    "localnet",
    "indexer",
    "indexer_api",
    "indexer_client",
)


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"error: no benchmark named {', '.join(unknown)}\nhint: there are {', '.join(BENCHMARKS)}")
    for name in names:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").run()
        print(flush=True)


if __name__ == "__main__":
    main()
