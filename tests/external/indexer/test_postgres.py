"""The indexer's store in PostgreSQL: everything that any store must do, and what is particular to a
server."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from psycopg import sql

from mycelium_indexer.store import open_store
from mycelium_indexer.store.postgres import SCHEMA, connect
from mycelium_indexer.store.sql import SqlStore
from mycelium_sdk.errors import BackendError, InputError, NewerFile, StoreUnavailable
from mycelium_sdk.testing.event_server import forged_history
from tests.indexer.store.conformance import StoreConformance
from tests.indexer.store.feeding import ALICE, CONTRACT, NETWORK, Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_indexer.store.base import IndexStore
    from tests.external.postgres.server import Server

_VERSIONS = sql.Identifier(SCHEMA, "schema_versions")

_numbers = itertools.count()


@pytest.fixture
def schema() -> str:
    """The name of a schema that is not there yet."""
    return f"index_{next(_numbers)}"


@pytest.fixture
def opened(server: Server, schema: str) -> Callable[[], IndexStore]:
    """Opens the store in the schema."""

    def opener() -> IndexStore:
        database = connect(server.dsn, connections=4, schema=schema)
        database.prepare()
        return SqlStore(database)

    return opener


class TestPostgres(StoreConformance):
    """See there."""


@pytest.fixture
def default_store(server: Server) -> Iterator[IndexStore]:
    store = open_store(server.dsn)
    yield store
    store.close()
    with server.superuser(server.database) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(SCHEMA)))


def test_by_its_url(server: Server, default_store: IndexStore) -> None:
    Feed(default_store).page(5, *forged_history(ALICE, 2))
    replica = open_store(server.dsn, read_only=True)
    (source,) = replica.sources()
    latest = replica.latest(source, ALICE)
    assert latest is not None
    assert latest.anchor.version == 2
    replica.close()


def test_tables_are_made_once_by_however_many(opened: Callable[[], IndexStore], schema: str) -> None:
    stores: list[IndexStore] = []
    threads = [threading.Thread(target=lambda: stores.append(opened())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 6
    found = {store.source(NETWORK, CONTRACT, "").id for store in stores}
    assert len(found) == 1
    for store in stores:
        store.close()


def test_killed_again_and_again_it_holds_what_a_file_does(
    server: Server, default_store: IndexStore, tmp_path: Path
) -> None:
    arguments = [str(tmp_path), "--kills", "15", "--events", "1000", "--database", server.dsn]
    done = subprocess.run(
        [sys.executable, "-m", "tests.indexer.ingest.killing", *arguments],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["same"], found["events"] >= 1000, found["kills"] > 8) == (True, True, True)
    (source,) = default_store.sources()
    assert default_store.totals(source).anchors > 900


def test_a_newer_schema_is_refused(server: Server, default_store: IndexStore) -> None:
    with server.superuser(server.database) as connection:
        connection.execute(sql.SQL("INSERT INTO {} VALUES (99, 0)").format(_VERSIONS))
    with pytest.raises(NewerFile, match="newer release"):
        open_store(server.dsn)


def test_without_tables_nothing_is_read_only(server: Server, schema: str) -> None:
    database = connect(server.dsn, connections=1, schema=schema)
    with pytest.raises(BackendError, match="has not the indexer's tables"):
        database.prepare(read_only=True)
    database.close()


def test_passwords_are_not_told(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = server.dsn.replace(server.password, "open-sesame")
    with pytest.raises(BackendError) as caught:
        open_store(wrong)
    assert "open-sesame" not in f"{caught.value} {caught.value.hint}"
    assert "database_url" in (caught.value.hint or "")
    with pytest.raises(InputError) as refused:
        open_store("postgresql://user:open-sesame@[host/base")
    assert "open-sesame" not in f"{refused.value} {refused.value.hint}"


def test_a_server_that_stops_is_waited_for(server: Server, opened: Callable[[], IndexStore]) -> None:
    feed = Feed(opened())
    history = forged_history(ALICE, 3)
    feed.page(5, history[0])
    server.stop()
    try:
        with pytest.raises(StoreUnavailable) as caught:
            feed.page(6, history[1])
        assert caught.value.retryable
    finally:
        server.start()
    assert feed.page(6, history[1])
    assert feed.versions() == [2, 1]
    feed.store.close()
