"""Many owners in one schema see nothing of each other, and no text is ever taken for SQL."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from mycelium_sdk import canonical
from mycelium_sdk.backends.postgres import PostgresBackend, schema
from mycelium_sdk.errors import BackendError, NewerFile
from mycelium_sdk.facts import ChainKey, LastAnchor
from mycelium_sdk.records import Record
from tests.external.postgres.conftest import OTHER_OWNER, OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.external.postgres.server import Server

INJECTIONS = [
    "'; DROP SCHEMA mycelium CASCADE; --",
    "' OR '1'='1",
    "1); DELETE FROM memories; --",
    "\\'; SELECT pg_sleep(60); --",
    "%s %b %(owner)s {} {0}",
    "$1 $$ $body$",
    "a\0'; DROP TABLE owners; --",
    "1 OR 1=1",
]


def test_owners_see_nothing_of_each_other(opened: Callable[..., PostgresBackend]) -> None:
    one, other = opened(OWNER), opened(OTHER_OWNER)
    mine = one.remember_many([(f"mine {number}", ["tag"]) for number in range(200)], session="s")
    theirs = other.remember_many([(f"theirs {number}", ["tag"]) for number in range(200)], session="s")
    assert set(mine) & set(theirs)  # ids are an owner's own
    before = other.change_counter(), other.all_records(), other.root()
    for hits in (one.recall("theirs mine", k=500), one.recall("mine", k=500, tags=["tag"], session="s")):
        assert {hit["content"].split()[0] for hit in hits} == {"mine"}
    assert len(one.recall("mine", k=500)) == 200
    assert one.forget(mine[0]) == 1
    assert one.forget(tag="tag") == 199
    one.import_blob(canonical.encode(OWNER, [Record("loaded", ("tag",))]))
    one.recall("loaded")
    assert one.forget("1", secure=True) == 0
    assert one.clear(secure=True) == 1
    assert (other.change_counter(), other.all_records(), other.root()) == before
    assert len(other.recall("theirs", k=500, tags=["tag"], session="s")) == 200
    assert one.records(theirs) == []
    assert one.ids_of([Record("theirs 1", ("tag",))]) == [None]
    assert other.ids_of([Record("theirs 1", ("tag",))]) == [theirs[1]]


def test_an_owner_who_never_wrote_has_an_empty_memory(opened: Callable[..., PostgresBackend]) -> None:
    opened(OWNER).remember("something")
    nobody = opened(OTHER_OWNER)
    assert nobody.count() == nobody.change_counter() == 0
    assert nobody.recall("something") == []
    assert nobody.all_records() == nobody.records(["1"]) == []
    assert nobody.forget("1") == nobody.forget(tag="t") == nobody.clear() == 0
    assert nobody.root() == canonical.root(canonical.encode(OTHER_OWNER, []))


@pytest.mark.parametrize("text", INJECTIONS)
def test_text_is_never_sql(opened: Callable[..., PostgresBackend], text: str) -> None:
    store, other = opened(OWNER), opened(OTHER_OWNER)
    kept = other.remember("kept")
    wanted = store.remember(text, [text], session=text)
    assert [hit["id"] for hit in store.recall(text, tags=[text], session=text)] == [wanted]
    assert store.recall(text, tags=[text, "none"]) == store.recall(text, session=text + "'") == []
    assert store.forget(text) == store.forget(tag=text + "'") == 0
    assert store.records([text, wanted]) == store.all_records()
    assert store.forget(tag=text) == 1
    assert other.records([kept])
    key = ChainKey("network '; --", "C' OR '1'='1", OWNER, "$1")
    anchor = LastAnchor(1, b"\1" * 32, "file:///'; --", 1, 1.0)
    anchors = store.last_anchors()
    anchors.record_last(key, anchor)
    assert anchors.last_anchor(key) == anchor
    anchors.forget_last(key.network, key.contract, OTHER_OWNER)
    assert anchors.newest_chain(key.network, key.contract, OWNER) == key


def test_last_anchors(opened: Callable[..., PostgresBackend]) -> None:
    store = opened()
    anchors = store.last_anchors()
    key, later = ChainKey("net", "C", OWNER, "a"), ChainKey("net", "C", OWNER, "b")
    assert anchors.newest_chain("net", "C", OWNER) is None
    assert anchors.last_anchor(key) is None
    first, second = (LastAnchor(version, bytes(31) + b"\1", None, version, 1.5) for version in (1, 2))
    other = LastAnchor(2, b"\2" * 32, "https://a/é", 7, 2.5)
    for anchor in (second, second, first):  # a lower version never takes the place of a higher one
        anchors.record_last(key, anchor)
        assert anchors.last_anchor(key) == second
    anchors.record_last(key, other)  # an equal one does
    assert opened().last_anchors().last_anchor(key) == other
    anchors.record_last(later, first)
    assert anchors.newest_chain("net", "C", OWNER) == later
    anchors.record_last(key, other)
    assert anchors.newest_chain("net", "C", OWNER) == key
    store.clear()
    assert anchors.last_anchor(key) == other  # a fact about the chain, whatever the memory holds
    anchors.forget_last("net", "C", OWNER)
    assert anchors.last_anchor(key) is anchors.last_anchor(later) is None


# -- the tables


def test_first_starts_at_once(server: Server, schema: str) -> None:
    stores = [PostgresBackend(OWNER, server.dsn, schema=schema) for _ in range(8)]
    together = threading.Barrier(len(stores))
    errors: list[BaseException] = []

    def start(number: int) -> None:
        try:
            together.wait()
            stores[number].remember(f"from {number}")
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [store.count() for store in stores] == [len(stores)] * len(stores)
    for store in stores:
        store.close()


def test_a_newer_version_is_refused_and_left_alone(
    opened: Callable[..., PostgresBackend], server: Server, schema: str
) -> None:
    opened().remember("a")
    with psycopg.connect(server.dsn) as connection:
        connection.execute(sql.SQL("UPDATE {} SET version = 99").format(sql.Identifier(schema, "about")))
    with pytest.raises(NewerFile, match="99"):
        opened().count()


def test_another_program_s_schema_is_refused_and_left_alone(
    opened: Callable[..., PostgresBackend], server: Server, schema: str
) -> None:
    with psycopg.connect(server.dsn) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(sql.SQL("CREATE TABLE {}(a int)").format(sql.Identifier(schema, "memories")))
    with pytest.raises(BackendError, match="another program"):
        opened().count()


def test_a_failed_first_start_leaves_nothing(
    opened: Callable[..., PostgresBackend], server: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mycelium_sdk.backends.postgres import schema as tables

    with monkeypatch.context() as patched:
        patched.setattr(tables, "_MIGRATIONS", (*tables._MIGRATIONS, "SELECT 1/0"))
        with pytest.raises(BackendError):
            opened().count()
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone()
    assert row == (0,)
    assert opened().count() == 0


def test_a_role_that_may_not_make_a_schema_is_told_what_helps(
    opened: Callable[..., PostgresBackend], server: Server, schema: str
) -> None:
    role = f"guest_{schema}"
    with server.superuser() as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{server.password}'")
    dsn = server.dsn.replace(f"//{server.role}:", f"//{role}:")
    with pytest.raises(BackendError, match="may not") as caught:
        opened(dsn=dsn).count()
    assert "GRANT" in str(caught.value.hint)
    with server.superuser(server.database) as connection:
        connection.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
    guest = opened(dsn=dsn)
    guest.remember("now it works")
    assert guest.forget("1", secure=True) == 1
    with server.superuser() as connection:
        row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    assert row == (False,)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_the_database_s_encoding_and_order_do_not_matter(
    opened: Callable[..., PostgresBackend], server: Server, encoding: str
) -> None:
    name = f"other_{encoding.lower()}"
    with server.superuser() as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING {encoding} LOCALE 'C' TEMPLATE template0")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO {server.role}")
    store = opened(dsn=server.dsn.replace(f"/{server.database}?", f"/{name}?"))
    texts = ["\uff5e", "\U0001f602", "é", "z", "Z", "a\0b", "漢字"]
    store.remember_many([(text, [text]) for text in texts], session="漢字")
    assert store.export_blob() == canonical.encode(OWNER, [Record(text, (text,)) for text in texts])
    assert [hit["content"] for hit in store.recall("漢字", session="漢字", tags=["漢字"])] == ["漢字"]
    digests = {hashlib.sha256(one.fragment.encode()).digest(): one.id for one in store.iter_records()}
    assert store.ids_of_digests([*digests, bytes(32)]) == digests
    assert store.ids_of_digests([]) == {}


def test_every_table_has_the_owner_in_its_key(opened: Callable[..., PostgresBackend], server: Server) -> None:
    name = opened()._connections.target.schema
    opened().count()
    with psycopg.connect(server.dsn) as connection:
        rows = connection.execute(
            "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
            " JOIN pg_namespace n ON n.oid = c.relnamespace"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
            " WHERE n.nspname = %s AND c.relname NOT IN ('about', 'owners')",
            (name,),
        ).fetchall()
    assert {table for table, _ in rows} == {*schema.WITH_TEXT, "anchors"}
    assert {column for _, column in rows} == {"owner"}
