"""The tables, once for every database, and the migrations that make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

__all__ = ["MIGRATIONS", "anchors", "gaps", "missed", "owners", "schema_versions", "set_aside", "sources"]

# SQLite counts rows by itself in a column of exactly this type only.
_Number = BigInteger().with_variant(Integer(), "sqlite")

# Addresses are listed in the order of their bytes, whatever the database's language.
_Address = Text().with_variant(Text(collation="C"), "postgresql")

_metadata = MetaData()

schema_versions = Table(
    "schema_versions",
    MetaData(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", Float, nullable=False),
)
"""Which migrations were applied, and when; made before any of them."""

sources = Table(
    "sources",
    _metadata,
    Column("id", _Number, primary_key=True),
    Column("network", Text, nullable=False),
    Column("contract", Text, nullable=False),
    Column("chain_id", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("current", Boolean, nullable=False),
    # How far it has been followed; the cursor is NULL, and the rest 0, before the first page.
    Column("cursor", Text),
    Column("ledger", BigInteger, nullable=False, default=0),
    Column("close_time", BigInteger, nullable=False, default=0),
    Column("landmark_ledger", BigInteger),
    Column("landmark_hash", Text),
    Column("latest_ledger", BigInteger, nullable=False, default=0),
    Column("asked_at", Float, nullable=False, default=0.0),
    Column("first_ledger", BigInteger, nullable=False, default=0),
    # How many rows the other tables hold for it.
    Column("owners", BigInteger, nullable=False, default=0),
    Column("anchors", BigInteger, nullable=False, default=0),
    Column("gaps", BigInteger, nullable=False, default=0),
    Column("set_aside", BigInteger, nullable=False, default=0),
    UniqueConstraint("network", "contract", "epoch"),
)

owners = Table(
    "owners",
    _metadata,
    Column("id", _Number, primary_key=True),
    Column("source", _Number, ForeignKey("sources.id"), nullable=False),
    Column("owner", _Address, nullable=False),
    Column("newest", BigInteger, nullable=False),  # version of the newest anchor
    Column("place", BigInteger, nullable=False),  # its ledger, by which owners are listed
    UniqueConstraint("source", "owner"),
    Index("owners_by_place", "source", "place", "owner"),
)

anchors = Table(
    "anchors",
    _metadata,
    Column("owner", _Number, ForeignKey("owners.id"), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("root", LargeBinary, nullable=False),
    Column("uri", LargeBinary, nullable=False),
    Column("acl", LargeBinary, nullable=False),
    Column("previous", LargeBinary),
    Column("timestamp", BigInteger),
    Column("ledger", BigInteger),
    Column("transaction", LargeBinary),
    Column("source", _Number, nullable=False),  # the owner's
    Column("event_id", Text),
    PrimaryKeyConstraint("owner", "version"),
    UniqueConstraint("source", "event_id"),
    sqlite_with_rowid=False,
)

gaps = Table(
    "gaps",
    _metadata,
    Column("owner", _Number, ForeignKey("owners.id"), nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("noticed_ledger", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner", "first"),
    sqlite_with_rowid=False,
)

missed = Table(
    "missed",
    _metadata,
    Column("source", _Number, ForeignKey("sources.id"), nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    PrimaryKeyConstraint("source", "first"),
    sqlite_with_rowid=False,
)

set_aside = Table(
    "set_aside",
    _metadata,
    Column("source", _Number, ForeignKey("sources.id"), nullable=False),
    Column("event_id", Text, nullable=False),
    Column("ledger", BigInteger, nullable=False),
    Column("transaction", Text, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("source", "event_id"),
    sqlite_with_rowid=False,
)


def _first_tables(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first_tables,)
"""What makes version 1 of an empty database, version 2 of version 1, and so on."""
