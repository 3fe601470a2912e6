"""The backend for many machines: one PostgreSQL database for the memories of many owners.

Needs the extra `postgres`; without it the import raises `ConfigError`, which says so.
"""

from mycelium_sdk.errors import ConfigError

try:
    import psycopg as _psycopg  # noqa: F401 - whether it is there, and finds libpq
except ImportError as error:
    raise ConfigError(
        "PostgreSQL's client library is not installed",
        hint='install it: pip install "mycelium-memory[postgres]"',
    ) from error

from mycelium_sdk.backends.postgres.store import PostgresBackend

__all__ = ["PostgresBackend"]
