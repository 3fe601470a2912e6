"""What the database looks like inside: one schema for all owners, the owner in every key.

about       the version of these tables.
owners      owner: the account. number: what stands for it in every key. changes: the change counter.
            sequence: the highest id given; it is never given again. memories, records: how many there are,
            and the sum of their copies. analyzer: whose terms the search index has. made: the highest number
            of a segment. root: that of the state with the counter root_changes.
            Whoever writes locks the owner's row first of all, so that an owner's ids are in the order of
            commits, and nobody can wait for anybody in a circle.
memories    key, identity: as in the local store (`local.rows`); bytes, so that the order of the index is the
            canonical order whatever the database's collation. session: UTF-8, since text here cannot hold
            U+0000. fragment: the record, exactly; ASCII, so that the database's encoding does not matter.
anchors     the last anchors on each chain (`facts.LastAnchors`).

Derived, and made anew when it is needed:

tags        which memories have a tag, by a digest of the tag, since a tag may be longer than a key can be.
segments, postings, coherence
            the search index, in the local store's form (`local.segments`).
embedding, vectors
            whose vectors these are, and the vectors: little-endian float32, of length 1 (or all zero).

Of columns that hold text, or tell of it, the planner keeps no samples: what is forgotten would live on there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import sql

from mycelium_sdk.errors import BackendError, NewerFile

if TYPE_CHECKING:
    from mycelium_sdk.backends.postgres.pool import Connection
    from mycelium_sdk.backends.postgres.target import Target

VERSION = 1

_FIRST = """
CREATE TABLE about(one boolean PRIMARY KEY CHECK (one), version integer NOT NULL);
CREATE TABLE owners(
    owner text COLLATE "C" PRIMARY KEY, number integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    changes bigint NOT NULL DEFAULT 0, sequence bigint NOT NULL DEFAULT 0, memories bigint NOT NULL DEFAULT 0,
    records bigint NOT NULL DEFAULT 0, analyzer text NOT NULL DEFAULT '', made bigint NOT NULL DEFAULT 0,
    root_changes bigint, root bytea);
CREATE TABLE memories(
    owner integer NOT NULL, id bigint NOT NULL, key bytea NOT NULL, identity bytea,
    copies integer NOT NULL, session bytea, time double precision, fragment text NOT NULL,
    PRIMARY KEY (owner, id));
CREATE UNIQUE INDEX memories_key ON memories(owner, key);
CREATE INDEX memories_identity ON memories(owner, identity) WHERE identity IS NOT NULL;
CREATE INDEX memories_session ON memories(owner, sha256(session), id) WHERE session IS NOT NULL;
CREATE TABLE anchors(
    owner text COLLATE "C" NOT NULL, network text COLLATE "C" NOT NULL, contract text COLLATE "C" NOT NULL,
    chain_id text COLLATE "C" NOT NULL, version bigint NOT NULL, root bytea NOT NULL, uri bytea,
    change_counter bigint NOT NULL, anchored_at double precision NOT NULL,
    recorded bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (owner, network, contract, chain_id));
CREATE TABLE tags(
    owner integer NOT NULL, tag bytea NOT NULL, id bigint NOT NULL, PRIMARY KEY (owner, tag, id));
CREATE TABLE segments(
    owner integer NOT NULL, id bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL,
    documents bigint NOT NULL, length bigint NOT NULL, compared bigint NOT NULL, near bigint NOT NULL,
    far bigint NOT NULL, lengths bytea NOT NULL, runs bytea NOT NULL, PRIMARY KEY (owner, id));
CREATE TABLE postings(
    owner integer NOT NULL, segment bigint NOT NULL, term bytea NOT NULL, documents bigint NOT NULL,
    places bytea NOT NULL, PRIMARY KEY (owner, segment, term));
CREATE TABLE coherence(
    owner integer NOT NULL, segment bigint NOT NULL, stretch bigint NOT NULL, compared bigint NOT NULL,
    near bigint NOT NULL, far bigint NOT NULL, PRIMARY KEY (owner, segment, stretch));
CREATE TABLE embedding(owner integer PRIMARY KEY, name bytea NOT NULL, probe bytea NOT NULL);
CREATE TABLE vectors(
    owner integer NOT NULL, id bigint NOT NULL, vector bytea NOT NULL, PRIMARY KEY (owner, id));
INSERT INTO about VALUES (true, 1);
ALTER TABLE memories ALTER key SET STATISTICS 0, ALTER identity SET STATISTICS 0,
    ALTER session SET STATISTICS 0, ALTER fragment SET STATISTICS 0;
ALTER TABLE postings ALTER term SET STATISTICS 0, ALTER places SET STATISTICS 0;
ALTER TABLE vectors ALTER vector SET STATISTICS 0;
"""

_MIGRATIONS = (_FIRST,)
"""The n-th brings the tables from version n to n + 1."""

_LOCK = 0x4D79_5067  # "MyPg"

WITH_TEXT = ("memories", "tags", "segments", "postings", "coherence", "embedding", "vectors")
"""The tables that hold memories, or what is made from them."""


def prepare(connection: Connection, target: Target) -> None:
    """Make the schema, or bring it up to date, in one transaction; one process at a time.

    Raises `NewerFile` if a newer version made it, `BackendError` if something else is there.
    """
    if _version(connection, target) == VERSION:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        name = sql.Identifier(target.schema)
        row = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (target.schema,)).fetchone()
        if row is None:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        version = _version(connection, target)
        connection.execute(sql.SQL("SET LOCAL search_path = {}, pg_temp").format(name))
        if (
            version == 0
            and connection.execute(
                "SELECT 1 FROM pg_tables WHERE schemaname = %s LIMIT 1", (target.schema,)
            ).fetchone()
        ):
            raise BackendError(
                f"the schema {target.schema} of {target.place} holds tables of another program",
                hint="choose another schema",
            )
        for migration in _MIGRATIONS[version:]:
            connection.execute(migration)
        connection.execute("UPDATE about SET version = %s", (VERSION,))


def _version(connection: Connection, target: Target) -> int:
    """The version that is there, 0 for none. Raises `NewerFile`."""
    if connection.execute("SELECT to_regclass(%s)", (f"{target.schema}.about",)).fetchone() == (None,):
        return 0
    table = sql.Identifier(target.schema, "about")
    row = connection.execute(sql.SQL("SELECT version FROM {}").format(table)).fetchone()
    version = 0 if row is None else int(row[0])
    if version > VERSION:
        raise NewerFile(
            f"the schema {target.schema} of {target.place} was made by a newer version"
            f" (format {version}, this one knows {VERSION})",
            hint="upgrade mycelium-memory",
        )
    return version
