"""When the server or the way to it fails: the right error, nothing lost, nothing doubled, and then on."""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.postgres import PostgresBackend, heads
from mycelium_sdk.errors import BackendError, InputError, StoreLocked, StoreUnavailable
from mycelium_sdk.records import Record
from tests.external.postgres.cable import Cable
from tests.external.postgres.conftest import OWNER
from tests.external.postgres.server import running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.backends.postgres.pool import Connection
    from tests.external.postgres.server import Server

SECRET = "pass word&%"


@pytest.fixture
def cable(server: Server) -> Iterator[Cable]:
    with tempfile.TemporaryDirectory(prefix="mycelium-pg-") as folder:  # the names of sockets are short
        cable = Cable(Path(folder), server.folder, server.port)
        yield cable
        cable.close()


@pytest.fixture
def far(opened: Callable[..., PostgresBackend], server: Server, cable: Cable) -> PostgresBackend:
    """A store at the other end of the cable, in use."""
    store = opened(dsn=server.dsn_at(cable.folder), connect_timeout=5)
    store.remember("before", ["kept"])
    return store


# -- the cable is cut


@pytest.mark.parametrize("cut", ["cut_before_commit", "cut_after_commit"])
def test_remembering_goes_through_whenever_the_connection_breaks(
    far: PostgresBackend, store: PostgresBackend, cable: Cable, cut: str
) -> None:
    getattr(cable, cut)()
    ids = far.remember_many(["one", "two", "one"])
    assert not cable.waits
    assert ids[0] == ids[2]
    assert [one.record.content for one in store.iter_records()] == ["before", "one", "two"]
    assert [one.id for one in store.records(ids[:2])] == ids[:2]
    assert store.change_counter() == far.change_counter() == 3


def test_forgetting_that_broke_before_the_commit_is_done_by_saying_so_again(
    far: PostgresBackend, store: PostgresBackend, cable: Cable
) -> None:
    cable.cut_before_commit()
    with pytest.raises(StoreUnavailable) as caught:
        far.forget(tag="kept")
    assert caught.value.retryable
    assert store.count() == 1
    assert far.forget(tag="kept") == 1


def test_forgetting_that_broke_after_the_commit_is_done(
    far: PostgresBackend, store: PostgresBackend, cable: Cable
) -> None:
    cable.cut_after_commit()
    with pytest.raises(StoreUnavailable) as caught:
        far.forget(tag="kept")
    assert "perhaps" in caught.value.message
    assert (store.count(), store.change_counter()) == (0, 2)
    assert far.forget(tag="kept") == 0


def test_a_commit_that_is_never_answered_is_given_up_and_may_be_done(
    opened: Callable[..., PostgresBackend],
    server: Server,
    cable: Cable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mycelium_sdk.backends.postgres.connections._LENGTHY", 0.2)
    monkeypatch.setattr("mycelium_sdk.backends.postgres.connections._GRACE", 0.2)
    far = opened(dsn=server.dsn_at(cable.folder))
    far.remember_many(["a", "b"], session="s")
    cable.silence_after_commit()
    with pytest.raises(StoreUnavailable, match="perhaps"):
        far.forget("1")
    assert not cable.waits
    assert far.count() == 1


@pytest.mark.parametrize(("cut", "done"), [("cut_before_commit", False), ("cut_after_commit", True)])
def test_an_import_that_broke_is_whole_or_not_at_all(
    far: PostgresBackend, store: PostgresBackend, cable: Cable, cut: str, *, done: bool
) -> None:
    blob = canonical.encode(OWNER, [Record(str(number)) for number in range(3000)])
    before = store.export_blob()
    getattr(cable, cut)()
    with pytest.raises(StoreUnavailable):
        far.import_blob(blob)
    assert store.export_blob() == (blob if done else before)
    assert far.import_blob(blob) == 3000
    assert store.export_blob() == blob


def test_a_broken_cable_amid_reading_is_mended(far: PostgresBackend, cable: Cable) -> None:
    cable.cut_after_commit()
    assert [hit["content"] for hit in far.recall("before")] == ["before"]
    assert not cable.waits


def test_a_view_left_halfway_does_not_reach_into_the_next_transaction(
    opened: Callable[..., PostgresBackend],
) -> None:
    store = opened(pool_size=1)
    store.remember_many([f"note {number}" for number in range(3000)])
    with store.snapshot() as view:
        left = [view.stored(), view.fragments(), view.stored(), view.fragments()]
        for rows in left:
            next(rows)
    for rows in left[:2]:
        with pytest.raises(BackendError, match="has ended"):
            list(rows)
    with store.snapshot() as view:
        first = next(view.fragments())
        del left, rows  # nobody needs them any more
        assert next(view.fragments()) == first
        assert len(list(view.stored())) == 3000
    assert store.count() == 3000


# -- the server goes


def test_a_server_that_was_killed_loses_nothing_and_is_found_again() -> None:
    with running_server() as server, PostgresBackend(OWNER, server.dsn, connect_timeout=2) as store:
        acknowledged: list[str] = []
        failed: list[BackendError] = []
        started = threading.Event()

        def write() -> None:
            try:
                for number in range(100_000):
                    store.remember(f"note {number}")
                    acknowledged.append(f"note {number}")
                    if number == 50:
                        started.set()
            except BackendError as error:
                failed.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        assert started.wait(60)
        server.stop("immediate")
        writer.join()
        assert isinstance(failed[0], StoreUnavailable)
        assert failed[0].retryable
        with pytest.raises(StoreUnavailable):
            store.recall("note")
        server.start()
        there = [one.record.content for one in store.iter_records()]
        assert set(acknowledged) <= set(there)
        assert len(there) == len(set(there)) == store.count() == store.change_counter()
        assert len(there) - len(acknowledged) in {0, 1}
        store.remember(f"note {len(acknowledged)}")
        assert store.count() == len(acknowledged) + 1
        assert len(store.recall("note", k=10**6)) == store.count()


def test_a_restarted_server_is_no_error_at_all(opened: Callable[..., PostgresBackend]) -> None:
    with running_server() as server, PostgresBackend(OWNER, server.dsn) as store:
        store.remember("before")
        server.stop("fast")
        server.start()
        store.remember("after")
        assert len(store.recall("before after")) == 2
        server.stop("fast")
        server.start()
        assert store.root() == canonical.root(store.export_blob())


def test_a_server_that_says_nothing_is_given_up() -> None:
    with (
        running_server() as server,
        PostgresBackend(OWNER, server.dsn, statement_timeout=0.1, connect_timeout=2) as store,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr("mycelium_sdk.backends.postgres.connections._GRACE", 0.5)
        store.remember("before")
        with server.frozen(), pytest.raises(StoreUnavailable) as caught:
            store.remember("meanwhile")
        assert caught.value.retryable
        store.remember("meanwhile")
        assert store.count() == 2


def test_a_statement_that_takes_too_long_is_given_up(
    opened: Callable[..., PostgresBackend], store: PostgresBackend
) -> None:
    store.remember("a")
    hasty = opened(statement_timeout=0.2)
    with pytest.raises(StoreUnavailable, match=r"within 0\.2 s"):
        hasty._connections.read(lambda connection: connection.execute("SELECT pg_sleep(60)"))
    assert hasty.count() == 1


def test_another_writer_is_waited_for_only_so_long(
    opened: Callable[..., PostgresBackend], store: PostgresBackend
) -> None:
    store.remember("a")
    hasty = opened(busy_timeout=0.2, connect_timeout=0.5)
    with store._connections.lengthy() as connection:
        connection.execute("SELECT 1 FROM owners FOR UPDATE")
        with pytest.raises(StoreLocked) as caught:
            hasty.remember("b")
        assert len(hasty.recall("a")) == 1  # who reads waits for nobody
    assert caught.value.retryable
    assert hasty.remember("b")


def test_a_writer_that_says_nothing_is_given_up_and_others_go_on(
    opened: Callable[..., PostgresBackend], store: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember("a")
    with monkeypatch.context() as patched:
        patched.setattr("mycelium_sdk.backends.postgres.connections._SILENT_WRITER", 0.2)
        silent = opened(connect_timeout=0.1)
    wrote, go_on = threading.Event(), threading.Event()
    failed: list[BackendError] = []

    def vanish() -> None:
        def work(connection: Connection) -> None:
            heads.lock(connection, OWNER)
            connection.execute("UPDATE owners SET changes = 1000")
            wrote.set()
            go_on.wait(60)
            connection.execute("SELECT 1")

        try:
            silent._connections.write(work, repeatable=False)
        except BackendError as error:
            failed.append(error)

    thread = threading.Thread(target=vanish)
    thread.start()
    assert wrote.wait(60)
    store.remember("b")  # waits for the silent one's end
    go_on.set()
    thread.join()
    assert isinstance(failed[0], StoreUnavailable)
    assert store.change_counter() == 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_connections_of_its_own(store: PostgresBackend) -> None:
    store.remember("by the parent")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.remember("by the child")
            store.close()
            status = 0
        finally:
            os._exit(status)
    store.remember("by the parent again")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.remember("and again")
    assert store.count() == store.change_counter() == 4


def test_more_threads_than_connections(opened: Callable[..., PostgresBackend]) -> None:
    store = opened(pool_size=1, connect_timeout=0.5)
    store.remember_many(["a", "b"])
    with store.snapshot(), pytest.raises(StoreLocked, match="all connections"):
        store.count()
    assert store.count() == 2


# -- what is said


def test_nothing_is_asked_before_it_is_needed(tmp_path: Path) -> None:
    with PostgresBackend(OWNER, f"postgresql://u:{'x'}@/db?host={tmp_path}") as store:
        assert OWNER in repr(store)
        with pytest.raises(StoreUnavailable, match="cannot connect"):
            store.count()


def test_a_password_is_never_said(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    quoted = "pass%20word%26%25"
    dsn = server.dsn.replace(server.password, quoted)
    said: list[str] = []
    with PostgresBackend(OWNER, dsn, connect_timeout=1) as store:
        said += [repr(store), store.place, str(vars(store))]
        with pytest.raises(BackendError) as caught:
            store.remember("the text of a memory")
    assert not caught.value.retryable
    said += [repr(caught.value), str(caught.value), str(caught.value.hint), str(pickle.dumps(caught.value))]
    error: BaseException | None = caught.value
    while error is not None:
        said.append(repr(error))
        error = error.__cause__ or error.__context__
    with PostgresBackend(OWNER, server.dsn) as store:
        store.remember("the text of a memory")
    said += [record.getMessage() for record in caplog.records]
    for text in said:
        for secret in (SECRET, quoted, server.password, "the text of"):
            assert secret not in text


@pytest.mark.parametrize(
    "dsn", [None, "", "  ", 5, "postgresql://u:secret%zz@h/d", "password=secret oops", "nonsense=secret"]
)
def test_a_dsn_that_cannot_be_read(dsn: str | None) -> None:
    with pytest.raises(InputError) as caught:
        PostgresBackend(OWNER, dsn)
    assert "secret" not in f"{caught.value!r} {caught.value.hint} {caught.value.__context__!r}"


@pytest.mark.parametrize(
    "arguments",
    [{"schema": "Me"}, {"schema": 'a"b'}, {"schema": ""}, {"schema": "pg_x"}, {"pool_size": 0}, {"embed": 3},
     {"connect_timeout": 0}, {"statement_timeout": -1}, {"busy_timeout": float("nan")}],
)  # fmt: skip
def test_bad_arguments(arguments: dict[str, object]) -> None:
    with pytest.raises(InputError):
        PostgresBackend(OWNER, "postgresql:///x", **arguments)  # type: ignore[arg-type]


def test_a_text_that_the_server_complains_about_is_not_repeated(
    store: PostgresBackend, server: Server
) -> None:
    store.remember("a")
    table = f"{store._connections.target.schema}.memories"
    with psycopg.connect(server.dsn) as connection:
        connection.execute(f"ALTER TABLE {table} ADD CHECK (length(fragment) < 100)")
    with pytest.raises(BackendError) as caught:
        store.remember("top secret " * 20)
    error: BaseException | None = caught.value
    assert "23514" in caught.value.message
    while error is not None:
        assert "secret" not in f"{error!r}{getattr(error, '__notes__', '')}" or error.__suppress_context__
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert store.count() == store.change_counter() == 1
