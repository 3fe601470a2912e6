"""The backend for many machines: one PostgreSQL database for the memories of many owners.

Needs the extra `postgres`; without it making a `PostgresBackend` raises `ConfigError`, which says so.
"""

from mycelium_sdk.backends.postgres.store import PostgresBackend

__all__ = ["PostgresBackend"]
