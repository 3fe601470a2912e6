"""How many requests each operation of the Supermemory backend makes.

Against the project's own server on this machine, so the time is what client and server add; a service
elsewhere adds a round trip for each request.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.table import print_table
from mycelium_sdk.backends.supermemory import SupermemoryBackend
from mycelium_sdk.testing.supermemory_server import SupermemoryServer

if TYPE_CHECKING:
    from collections.abc import Callable

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
RECORDS = 2000


def run() -> None:
    """Print the table."""
    print(f"requests (milliseconds) for each operation on a namespace of {RECORDS} memories")
    rows: dict[str, list[str]] = {}
    for api in ("v5", "v3"):
        for name, cost in _measured(api):
            rows.setdefault(name, [name]).append(cost)
    print_table(("operation", "v5", "v3"), list(rows.values()))


def _measured(api: str) -> list[tuple[str, str]]:
    costs = []
    with SupermemoryServer([api]) as server:

        def opened() -> SupermemoryBackend:
            return SupermemoryBackend(OWNER, "a-key", server.url, api="v3" if api == "v3" else "v5")

        def cost(name: str, act: Callable[[], object]) -> None:
            before, start = len(server.requests), time.perf_counter()
            act()
            taken = (time.perf_counter() - start) * 1000
            costs.append((name, f"{len(server.requests) - before} ({taken:.0f})"))

        with opened() as store:
            texts = [f"memory {number} about subject {number % 97}" for number in range(RECORDS)]
            cost(f"remember_many, {RECORDS} into an empty one", lambda: store.remember_many(texts))
        with opened() as store:
            cost("recall by a new process", lambda: store.recall("subject 7"))
            cost("recall again", lambda: store.recall("subject 8"))
        with opened() as store:
            cost("remember by a new process", lambda: store.remember("by a new process"))
        with opened() as store:
            cost(f"export of {RECORDS} by a new process", store.export_blob)
            cost("export again", store.export_blob)
            cost("root, nothing written", store.root)
            cost("remember", lambda: store.remember("one more"))
            cost("remember again", lambda: store.remember("one more"))
            cost("remember_many of 500", lambda: store.remember_many([f"more {n}" for n in range(500)]))
            name = store.remember("to forget")
            cost("forget by id", lambda: store.forget(name))
            cost("count", store.count)
            blob = store.export_blob()
            cost("import of what is there", lambda: store.import_blob(blob))
            cost("clear", store.clear)
            cost("import into an empty one", lambda: store.import_blob(blob))
    return costs


if __name__ == "__main__":
    run()
