"""Which database, and how it is reached: the DSN, checked, without ever showing what is secret in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mycelium_sdk.errors import InputError

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SHOWN = ("host", "port", "dbname", "user")

# A peer that vanished without a word is noticed within half a minute.
_KEEPALIVES = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


@dataclass(frozen=True, slots=True)
class Target:
    """A database, the schema in it, and the bounds of waiting for it, in seconds."""

    parameters: dict[str, object] = field(repr=False)
    """What libpq is given."""
    place: str
    """Where it is, for messages: without password, files and options."""
    schema: str
    connect_timeout: float
    statement_timeout: float
    busy_timeout: float


def target(
    dsn: object, schema: str, *, connect_timeout: float, statement_timeout: float, busy_timeout: float
) -> Target:
    """The target that a DSN names; does not look for it. Raises `InputError`."""
    if not isinstance(dsn, str) or not dsn.strip():
        raise InputError(
            "the DSN of the database is missing",
            hint="set [memory] dsn or MYCELIUM_DSN, e.g. postgresql://user@host/database",
        )
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise InputError(
            "the schema is no plain name", hint="lower-case letters, digits and underscores, e.g. mycelium"
        )
    for value, name in (
        (connect_timeout, "connect_timeout"),
        (statement_timeout, "statement_timeout"),
        (busy_timeout, "busy_timeout"),
    ):
        if not 0 < value < 1e6:
            raise InputError(f"{name} is not a number of seconds above 0")
    known = _read(dsn)
    if known is None:
        raise InputError(
            "the DSN of the database cannot be read",
            hint="write postgresql://user:password@host:5432/database, with special characters as %XX",
        )
    place = " ".join(f"{key}={known[key]}" for key in _SHOWN if known.get(key)) or "its default place"
    defaults = {
        "application_name": "mycelium",
        "client_encoding": "UTF8",
        "connect_timeout": max(2, round(connect_timeout)),
        **_KEEPALIVES,
    }
    parameters: dict[str, object] = {**defaults, **known}
    return Target(
        parameters, f"PostgreSQL ({place})", schema, connect_timeout, statement_timeout, busy_timeout
    )


def _read(dsn: str) -> dict[str, object] | None:
    """What the DSN says. None for what is none: libpq quotes what it cannot read, a password too, so its
    error goes no further."""
    try:
        return dict(conninfo_to_dict(dsn))
    except psycopg.Error:
        return None
