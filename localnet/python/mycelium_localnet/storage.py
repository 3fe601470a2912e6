"""The chain file: opening it safely, one writer at a time, readers that see one state each.

One SQLite file in WAL mode. Writing takes the lock at once (BEGIN IMMEDIATE), so processes that share the
file close ledgers one after the other; a reader sees the state that was committed when it began, whatever is
written meanwhile. A killed writer leaves nothing behind: its ledger is either there or not.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import threading
import time
import weakref
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final

from mycelium_localnet.errors import (
    ChainBusyError,
    ChainClosedError,
    ChainFileError,
    ChainReplacedError,
    ForeignFileError,
    NewerFileError,
    UnsafeFileError,
    UnusableFileError,
)
from mycelium_localnet.schema import APPLICATION_ID, CHEAT_TABLES, SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY: Final = ":memory:"
"""The path of a chain that is gone when it is closed: a file in a private temporary folder."""

BUSY_SECONDS: Final = 30.0
"""How long a writer waits for another process."""

_IDLE_READERS = 8

_left_to_parents: Final[list[sqlite3.Connection]] = []
"""In a forked child: its parent's connections, kept since SQLite closes one that is let go of."""

_HEADER_BYTES = 100
# One statement, so one state: another process may be making the file just now.
_KIND = (
    "SELECT (SELECT application_id FROM pragma_application_id),"
    " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
)


class Storage:
    """One open chain file. Safe to share between threads, not with a forked child."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file, or create it empty (mode 0600); tables come with the first `write`, from
        `create_tables`.

        Raises ForeignFileError, NewerFileError, UnsafeFileError, ChainFileError, ChainBusyError.
        """
        self._clean_up: Callable[[], object] = _nothing
        if os.fspath(path) == MEMORY:
            folder = tempfile.mkdtemp(prefix="mycelium-localnet-")
            self._clean_up = weakref.finalize(self, rmtree, folder, ignore_errors=True)
            self.path = str(Path(folder, "chain.db"))
        else:
            self.path = str(Path(path).absolute())
        self._lock = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._process = os.getpid()
        self._closed = False
        try:
            self._identity = _prepare(Path(self.path))
            with _translated(self.path):
                self._writer = self._open_writer()
        except BaseException:
            self._clean_up()
            raise

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """The connection for writing, inside a transaction that commits at the end of the block.

        An exception rolls everything back. Raises ChainBusyError, ChainClosedError, ChainReplacedError,
        ChainFileError.
        """
        with self._lock:
            self._check()
            with _translated(self.path):
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    # A full disk makes SQLite roll back by itself.
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection for reading, inside a transaction: every query in the block sees one state."""
        self._check()
        with _translated(self.path):
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
            if self._closed or len(self._readers) >= _IDLE_READERS:
                connection.close()
            else:
                self._readers.append(connection)

    def close(self) -> None:
        """Release the file. Idempotent. In a forked child the file stays its parent's: SQLite would remove
        the log with what others have written to it."""
        if os.getpid() != self._process:
            _left_to_parents.extend((*self._readers, self._writer))
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            while self._readers:
                self._readers.pop().close()
            self._writer.close()
            self._clean_up()

    def _check(self) -> None:
        if self._closed:
            raise ChainClosedError("this chain was closed", hint="open it again with Chain.open")
        if os.getpid() != self._process:
            raise ChainClosedError(
                "this chain was opened by another process (a fork shares it)",
                hint="open the file again with Chain.open in this process",
            )
        try:
            found = os.stat(self.path)  # noqa: PTH116 - Path.stat costs more than this whole check
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise ChainReplacedError(
                f"the chain file {self.path} was deleted or replaced while it was open",
                hint="close this chain and open the file again",
            )

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _open_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        try:
            _check_kind(connection, self.path)
            _use_wal(connection, self.path)
            connection.execute("PRAGMA synchronous = NORMAL")
            _upgrade(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _nothing() -> None:
    """What cleaning up takes for a file that stays."""


def is_new(connection: sqlite3.Connection) -> bool:
    """Whether the file has no tables yet. Ask inside a `write`: another process may be creating them."""
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]) == 0


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the file a chain file, within the caller's transaction."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for statement in (*TABLES, *CHEAT_TABLES):
        connection.execute(statement)


def _upgrade(connection: sqlite3.Connection) -> None:
    """Give a file of version 1 what it lacks. How its entries changed until now stays unknown, so that an
    older state shows the entries of the time of this upgrade."""
    if connection.execute("PRAGMA user_version").fetchone()[0] != 1:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 1:
            for statement in CHEAT_TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _prepare(path: Path) -> tuple[int, int]:
    """Create the file privately unless it is there, and return what identifies it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except FileNotFoundError as error:
        raise ChainFileError(
            f"the folder of the chain file {path} does not exist", hint=f"create it: mkdir -p {path.parent}"
        ) from error
    except OSError as error:
        raise UnusableFileError(
            f"the chain file {path} cannot be created: {error.strerror}",
            hint="see who may write there, or name another file",
        ) from error
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ForeignFileError(f"{path} is not a regular file", hint="name a file for the chain")
    if found.st_mode & 0o077:
        mode = f"{found.st_mode & 0o777:03o}"
        raise UnsafeFileError(
            f"the chain file {path} can be used by other users of this machine (mode {mode})",
            hint=f"chmod 600 {path}",
        )
    return found.st_dev, found.st_ino


def _check_kind(connection: sqlite3.Connection, path: str) -> None:
    """Refuse what is not ours before anything is written to it."""
    foreign = ForeignFileError(
        f"{path} is not a chain file",
        hint="name another file; if it was a chain and something overwrote it, "
        "restore it from a copy: without one its anchors are lost",
    )
    try:
        application, version, tables = connection.execute(_KIND).fetchone()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise (_damaged(path, error) if _begins_as_ours(path) else foreign) from error
    if tables == application == version == 0:
        return
    if application != APPLICATION_ID:
        raise foreign
    if version > SCHEMA_VERSION:
        formats = f"format {version}, this is {SCHEMA_VERSION}"
        raise NewerFileError(
            f"{path} was made by a later version of mycelium-localnet ({formats})",
            hint="upgrade mycelium-localnet, or name another file",
        )


def _use_wal(connection: sqlite3.Connection, path: str) -> None:
    """Switch the file to write-ahead logging. SQLite does not wait for other openers here, so this does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise ChainFileError(
                f"{path} is on a file system without shared memory for SQLite's write-ahead log",
                hint="keep the chain file on a local disk",
            )
        return


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """SQLite's errors as this package's."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise ChainBusyError(
                f"another process kept the chain file {path} locked for {BUSY_SECONDS:.0f} seconds",
                hint="wait for it to finish, or end it",
            ) from error
        full = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL
        raise UnusableFileError(
            f"the chain file {path} cannot be used: {error}",
            hint="make room on its disk" if full else "see whether its disk works and may be written to",
        ) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: sqlite3.DatabaseError) -> UnusableFileError:
    return UnusableFileError(
        f"the chain file {path} is damaged: {error}",
        hint="restore it from a copy, or load a dump of it; without either its anchors are lost",
    )


def _begins_as_ours(path: str) -> bool:
    """Whether the header is that of a chain file, whatever became of the rest (sqlite.org/fileformat2)."""
    with Path(path).open("rb") as file:
        header = file.read(_HEADER_BYTES)
    return header.startswith(b"SQLite format 3\0") and header[68:72] == APPLICATION_ID.to_bytes(4, "big")
