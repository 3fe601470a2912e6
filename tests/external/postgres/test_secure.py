"""Forgetting securely: the text is in none of the database's files afterwards."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.errors import StoreLocked, Tampered

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.postgres import PostgresBackend
    from tests.external.postgres.server import Server

SECRET = "xylophonesecret"


def files_with(server: Server, secret: str) -> list[str]:
    """The names of the files of the database's tables that hold the text."""
    with server.superuser(server.database) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute(
            "SELECT oid::text FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    folder = server.data / "base" / row[0]
    return [path.name for path in folder.iterdir() if path.is_file() and secret.encode() in path.read_bytes()]


def fill(store: PostgresBackend) -> str:
    store.remember_many([(f"note {number}", ["kept"]) for number in range(300)])
    wanted = store.remember(f"it is {SECRET} indeed", [SECRET], session=SECRET)
    store.remember("x" * 5000 + SECRET * 400)
    store.import_blob(store.export_blob())
    store.prepare()
    assert store.recall(SECRET)
    return wanted


def test_nothing_of_a_text_is_left(store: PostgresBackend, server: Server) -> None:
    wanted = fill(store)
    with server.superuser(server.database) as connection:
        connection.execute("ANALYZE")  # the planner keeps samples of what it saw
    assert files_with(server, SECRET)
    assert store.forget(wanted) == 1
    long = store.recall("x" * 64, k=1)[0]["id"]
    assert store.forget(long, secure=True) == 1  # also what was forgotten before, less thoroughly
    assert files_with(server, SECRET) == []
    assert store.count() == len(store.recall("note", k=1000)) == 300


def test_a_reader_of_an_older_state_is_waited_for(
    opened: Callable[..., PostgresBackend], server: Server
) -> None:
    store = opened()
    wanted = fill(store)
    hasty = opened(busy_timeout=0.3)
    with store.snapshot() as view:
        with pytest.raises(StoreLocked, match="forgotten, but a copy"):
            hasty.forget(wanted, secure=True)
        assert any(SECRET in stored.fragment for stored in view.stored())
    assert hasty.clear(secure=True) == 301
    assert files_with(server, SECRET) == []
    assert store.recall(SECRET) == []


def test_a_writer_that_began_before_is_waited_for(
    opened: Callable[..., PostgresBackend], server: Server
) -> None:
    store, hasty = opened(), opened(busy_timeout=0.3)
    wanted = fill(store)
    with store._connections.lengthy() as connection:
        connection.execute("INSERT INTO owners(owner) VALUES ('somebody else')")
        with pytest.raises(StoreLocked, match="forgotten, but a copy"):
            hasty.forget(wanted, secure=True)
    assert hasty.clear(secure=True) == 301
    assert files_with(server, SECRET) == []


def test_others_go_on_meanwhile(opened: Callable[..., PostgresBackend]) -> None:
    one, other = opened(), opened()
    fill(one)
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(40):
                other.remember(f"meanwhile {number}")
                assert other.recall(f"meanwhile {number}", k=1)
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            errors.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(3):
        one.forget(one.remember("gone soon"), secure=True)
    writer.join()
    assert errors == []
    assert len(one.recall("meanwhile", k=100)) == 40


def test_edits_behind_its_back_are_not_vouched_against(store: PostgresBackend) -> None:
    wanted = store.remember("genuine")
    assert store.check().state is Integrity.UNPROTECTED
    with store._connections.lengthy() as connection:
        connection.execute("UPDATE memories SET fragment = 'no record at all'")
    with pytest.raises(Tampered):
        store.forget(wanted)
    assert store.clear() == 1
