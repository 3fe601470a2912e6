"""The API over PostgreSQL: processes that may only read, and a server that goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from mycelium_indexer.store import open_store
from mycelium_indexer.store.postgres import SCHEMA
from tests.indexer.api.ground import Api, anchors_of, fill, owner_number, serving, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_indexer.store.base import IndexStore
    from tests.external.postgres.server import Server

OWNER = owner_number(1)
READER = "reader"


@pytest.fixture
def store(server: Server) -> Iterator[IndexStore]:
    opened = open_store(server.dsn)
    yield opened
    opened.close()
    with server.superuser(server.database) as connection:
        connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE".encode())


@pytest.fixture
def read_only(server: Server, store: IndexStore) -> Iterator[str]:
    """The database's URL as a role that may write nothing, as on a replica."""
    with server.superuser(server.database) as connection:
        for statement in (
            f"CREATE ROLE {READER} LOGIN PASSWORD '{server.password}'",
            f"GRANT USAGE ON SCHEMA {SCHEMA} TO {READER}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {READER}",
            f"ALTER ROLE {READER} SET default_transaction_read_only = on",
        ):
            connection.execute(statement.encode())
        yield server.dsn.replace(f"//{server.role}:", f"//{READER}:")
        connection.execute(f"DROP OWNED BY {READER}; DROP ROLE {READER}".encode())


@contextmanager
def process(folder: Path, url: str) -> Iterator[Api]:
    """`mycelium indexer serve` over that database, which ends in order."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MYCELIUM_")}
    with subprocess.Popen(
        [sys.executable, "-m", "mycelium_cli", "indexer", "serve", "--port", "0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**environment, "MYCELIUM_HOME": str(folder / "home"), "MYCELIUM_INDEXER_DATABASE_URL": url},
    ) as started:  # fmt: skip
        try:
            assert started.stdout is not None
            yield Api(int(started.stdout.readline().rpartition(":")[2]))
            started.send_signal(signal.SIGTERM)
            started.communicate(timeout=60)
            assert started.returncode == 0
        finally:
            started.kill()


def test_several_processes_that_may_only_read(store: IndexStore, read_only: str, tmp_path: Path) -> None:
    made = anchors_of(OWNER, [b"", b"\xff\x00", b"'; DROP TABLE owners; --"])
    source = fill(store, made[:1])
    query = f"?network=standalone&contract={source.contract}"
    with ExitStack() as stack:
        apis = [stack.enter_context(process(tmp_path, read_only)) for _ in range(2)]
        for count in (1, 2, 3):
            answers = [api.get(f"/memory/{OWNER}{query}").json for api in apis]
            assert [answer["version"] for answer in answers] == [count, count]
            assert answers[0]["uri_hex"] == made[count - 1].anchor.uri.hex()
            fill(store, made[count : count + 1])
        first = apis[0].get(f"/memory/{OWNER}/history{query}&limit=2").json
        second = apis[1].get(f"/memory/{OWNER}/history{query}&cursor={first['next']}").json
        assert [item["version"] for page in (first, second) for item in page["items"]] == [3, 2, 1]
        assert first["complete"] is True


def test_a_server_that_goes_away_and_comes_back(server: Server, store: IndexStore) -> None:
    fill(store, anchors_of(OWNER, [b""]))
    with serving(store, settings()) as api:
        assert api.get(f"/memory/{OWNER}").status == 200
        server.stop()
        try:
            for path in (f"/memory/{OWNER}", f"/memory/{OWNER}/history", "/memory", "/readyz"):
                answer = api.get(path)
                assert (answer.status, answer.problem) == (503, "database-unavailable")
                assert answer.json["as_of_ledger"] == 5000
                assert server.password not in answer.body.decode()
            assert api.get("/healthz").status == 200
            assert b"\nmycelium_indexer_database_up 0.0\n" in api.get("/metrics").body
        finally:
            server.start()
        assert api.get(f"/memory/{OWNER}").status == 200
