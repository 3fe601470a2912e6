"""Follows made-up events in processes that are killed, one after the other, and at last in one that is not.

    python -m tests.indexer.ingest.killing FOLDER --kills 50 --events 10000

Writes to stdout what was found, as JSON. Each process is a fork of one that has everything loaded. Every
other one kills itself before a statement or a commit that the seed chooses, the rest are killed by their
parent when they come to one, wherever they are by then.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine, event
from stellar_sdk import scval

from mycelium_indexer.ingest import Ingester
from mycelium_indexer.store import open_store
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.strkey import encode_account
from mycelium_sdk.testing.event_server import EventServer, forged_history
from tests.indexer.contents import contents

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = 20
PAGE = 20
MOST_STEPS = 350


def made_up(events: int) -> EventServer:
    """A chain with so many events: some owners with gaps, and some events that are no anchors."""
    server = EventServer()
    owners = [
        encode_account(hashlib.sha256(b"owner %d" % number).digest()) for number in range(events // VERSIONS)
    ]
    histories = [forged_history(owner, VERSIONS + 2) for owner in owners]
    for version in range(VERSIONS):
        for start in range(0, len(histories), 25):
            some = histories[start : start + 25]
            # Every seventh owner lacks a version.
            server.add(
                *(one[version + (2 if n % 7 == 0 and version >= 9 else 0)] for n, one in enumerate(some))
            )
        server.add_event([], scval.to_void().to_xdr())
    return server


def follow(server: EventServer, database: str, page: int) -> None:
    """Read everything into the database."""
    store = open_store(database)
    chain = RpcChain(server.URL, server.PASSPHRASE, client=server)
    ingester = Ingester(MemoryAnchorClient(chain, server.CONTRACT), store, page=page)
    while ingester.poll_once():
        pass
    store.close()


def killed(work: Callable[[], None], steps: int, *, by_itself: bool) -> bool:
    """Whether a process that does `work` was killed at its so manieth step, before it was done."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _die_at(steps, lambda: _kill_self() if by_itself else os.write(writing, b"."))
            work()
        except BaseException as error:  # noqa: BLE001 - the process ends here, whatever it was
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)
    os.close(writing)
    if not by_itself and os.read(reading, 1):
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0, "it failed by itself"
        return False
    assert os.WTERMSIG(status) == signal.SIGKILL
    return True


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_at(steps: int, die: Callable[[], object]) -> None:
    left = steps

    def step(*_arguments: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die()

    for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
        event.listen(Engine, name, step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", help="where the killed ones write [default: a file in the folder]")
    given = parser.parse_args()
    logging.getLogger("mycelium_indexer").setLevel(logging.ERROR)
    server = made_up(given.events)
    chance = random.Random(given.seed)  # noqa: S311
    database = given.database or str(given.folder / "killed.db")
    whole_file = str(given.folder / "whole.db")
    most = MOST_STEPS * given.events // 10_000
    kills = sum(
        killed(lambda: follow(server, database, PAGE), chance.randint(1, most), by_itself=round_ % 2 == 0)
        for round_ in range(given.kills)
    )
    interrupted = open_store(database)
    (source,) = interrupted.sources()
    progress = interrupted.progress(source)
    follow(server, database, PAGE)
    follow(server, whole_file, 1000)
    whole = open_store(whole_file)
    (other,) = whole.sources()
    totals = whole.totals(other)
    found = {
        "kills": kills,
        "done_by_then": 0 if progress is None else progress.ledger / server.latest,
        "same": contents(interrupted, source) == contents(whole, other),
        "events": totals.anchors + totals.set_aside,
        "gaps": totals.gaps,
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
