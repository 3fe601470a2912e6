"""Where the indexer keeps what it has seen: the seam, and the one set of queries behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.errors import ConfigError
from mycelium_sdk.installing import install_command

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

__all__ = ["open_store"]


def open_store(url: str, *, read_only: bool = False, connections: int = 8) -> IndexStore:
    """The store in the database at `url`: `postgresql://...` as libpq takes it, `sqlite:///path`, or the path
    of a SQLite file, made 0600 where missing.

    What the database lacks of tables is made, unless `read_only`, as for a replica. `connections`: how many
    threads may use it at once; others wait.

    Raises:
        InputError: the URL is none of these.
        ForeignFile, NewerFile: the file is another program's, or the database a newer release's.
        BackendError: it cannot be opened, or has no tables and is opened to be read only.
        ConfigError: SQLAlchemy, or PostgreSQL's client library, is not installed.
    """
    try:
        from mycelium_indexer.store.database import open_database
        from mycelium_indexer.store.sql import SqlStore
    except ImportError as error:
        raise ConfigError(
            "what the indexer needs is not installed",
            hint=f"install it: {install_command('indexer')}",
        ) from error
    return SqlStore(open_database(url, read_only=read_only, connections=connections))
