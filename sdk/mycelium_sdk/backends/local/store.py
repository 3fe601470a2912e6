"""The local backend: one owner's memory in one SQLite file.

Durable when a call returns (WAL with full synchronisation), for many threads and processes at once, readable
by its owner's account only. What is kept is each record's exact fragment; all else can be made anew from it.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mycelium_sdk import canonical
from mycelium_sdk.backends.base import (
    Addition,
    BaseBackend,
    CheckedExport,
    Context,
    Imported,
    Progress,
    Query,
    Selection,
    Snapshot,
    Stats,
)
from mycelium_sdk.backends.local import writing
from mycelium_sdk.backends.local.connections import Connections
from mycelium_sdk.backends.local.keys import Keys
from mycelium_sdk.backends.local.opened import MemoryFile
from mycelium_sdk.backends.local.rows import row_of
from mycelium_sdk.backends.local.seals import Sealers, genuine
from mycelium_sdk.errors import BackendError, InputError, StoreLocked, Tampered
from mycelium_sdk.files import ensure_private_folder
from mycelium_sdk.home import Home
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES, Record
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.backends.local.opened import Opened
    from mycelium_sdk.backends.local.search import Search
    from mycelium_sdk.backends.local.vectors import Vectors
    from mycelium_sdk.backends.local.view import View
    from mycelium_sdk.backends.scoring import Candidates
    from mycelium_sdk.embedders.base import Embed, Embedder

Durability = Literal["power", "process"]
"""What a write outlives once it is acknowledged: a power cut, or the end of the process only."""

_SYNCHRONOUS = {"power": "FULL", "process": "NORMAL"}


class LocalVectorBackend(BaseBackend):
    """The owner's memory in a SQLite file.

    `owner`: the account, G... `path`: the file; None for `memory/{owner}.db` in the home folder, which is
    made; ":memory:" for one that ends with this object. The folder of an explicit path must exist. `embed`:
    any function from a text to a vector of floats, or an `Embedder`; None ranks by words alone.
    `durability`: "power" keeps what is acknowledged through a power cut, at one synchronisation for each
    write; "process" keeps it through the end of the process only, which is quicker. `integrity`: the
    folder of the keys that vouch for memory files, made if missing; None for `state/integrity` in the home
    folder. It belongs outside the reach of whoever else can write the memory file. `progress` is told, now
    and then, of what takes long: indexing and embedding that a recall waits for, and what is loaded, checked
    or sealed by calls that name no `progress` of their own. `busy_timeout`: seconds to wait for other
    processes. `max_record_bytes`: limit of one remembered record.

    Raises `InputError` for a bad owner, path or durability, `ForeignFile` for a file of another owner or
    program, `NewerFile` for one of a newer version, `BackendError` for one that cannot be opened or that
    others could read. Later, `IntegrityKeyMissing` and `Tampered` say what `check` would.
    """

    def __init__(
        self,
        owner: str,
        path: str | os.PathLike[str] | None = None,
        embed: Embed | Embedder | None = None,
        *,
        durability: Durability = "power",
        integrity: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        busy_timeout: float = 30.0,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
    ) -> None:
        super().__init__(owner, max_record_bytes=max_record_bytes)
        if embed is not None and not callable(embed) and not hasattr(embed, "embed"):
            raise InputError(
                "embed is neither a function from a text to a vector nor an embedder",
                hint="give a function, or one of `mycelium_sdk.embedders`",
            )
        if durability not in _SYNCHRONOUS:
            raise InputError(
                "durability is neither power nor process", hint='"power" outlives a power cut, "process" not'
            )
        self.path = _path(owner, path)
        """The file, None for a memory that ends with this object."""
        self._embed = embed
        self._progress = progress
        self._sealers = Sealers(_keys(self.path, integrity), self.path)
        self._busy_timeout = busy_timeout
        self._synchronous = _SYNCHRONOUS[durability]
        self._file = MemoryFile(self._connect)

    def __repr__(self) -> str:
        place = ":memory:" if self.path is None else str(self.path)
        return f"{type(self).__name__}({self.owner!r}, {place!r})"

    def _connect(self, *, make: bool) -> Connections:
        self._sealers.forget()
        return Connections(
            self.path,
            self.owner,
            self._sealers,
            timeout=self._busy_timeout,
            synchronous=self._synchronous,
            make=make,
        )

    @property
    def _connections(self) -> Connections:
        """To the file that is at the path, which is looked at each time."""
        return self._file.now().connections

    def add(self, additions: Sequence[Addition]) -> list[str]:
        """See `Backend.add`."""
        rows = [(addition, row_of(addition.record)) for addition in additions]
        with self._connections.writing() as connection:
            return writing.add(connection, self._sealers, rows)

    @contextlib.contextmanager
    def _viewing(self) -> Iterator[View]:
        # Imported where they are needed: remembering is quick to start.
        from mycelium_sdk.backends.local.view import View

        with (
            self._connections.viewing() as connection,
            contextlib.closing(View(connection, self._sealers)) as view,
        ):
            yield view

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """See `Backend.snapshot`."""
        return self._viewing()

    def replace(
        self,
        records: Iterable[tuple[str, Record]],
        *,
        expected_changes: int | None,
        contexts: Iterable[Context] | None,
        progress: Progress | None,
    ) -> Imported:
        """See `Backend.replace`."""
        from mycelium_sdk.backends.local import filling, loading

        progress = progress or self._progress
        with self._connections.dedicated() as connection:
            if (
                isinstance(records, canonical.Fragments)
                and records.at_hand
                and filling.fresh(connection, self._sealers)
            ):
                known = contexts = None if contexts is None else filling.Known(contexts)
                with self._connections.transaction(connection):
                    done = filling.fill(
                        connection,
                        self._sealers,
                        records,
                        known=known,
                        expected_changes=expected_changes,
                        progress=progress,
                    )
                if done is not None:
                    return done
            try:
                plain = loading.stage(connection, records, contexts, progress)
                with self._connections.transaction(connection):
                    return loading.replace(
                        connection,
                        self._sealers,
                        expected_changes,
                        plain=plain,
                        in_context=contexts is not None,
                        progress=progress,
                    )
            finally:
                loading.unstage(connection)

    def remove(self, selection: Selection, *, secure: bool) -> int:
        """See `Backend.remove`."""
        if not secure:
            with self._connections.writing() as connection:
                return writing.remove(connection, self._sealers, selection)
        with self._connections.exclusive() as connection:
            # Even if the rewrite below cannot be made, or the machine stops before it.
            connection.execute("PRAGMA secure_delete = ON")
            with self._connections.transaction(connection):
                removed = writing.remove(connection, self._sealers, selection)
            try:
                self._connections.scrub(connection)
            except BackendError as cause:
                kind = StoreLocked if isinstance(cause, StoreLocked) else BackendError
                raise kind(
                    "the memory is forgotten, but a copy of the text remains in the store's files:"
                    f" {cause.message}",
                    hint="forget it again, securely, when that is mended",
                ) from cause
        return removed

    def check(self, progress: Progress | None = None) -> IntegrityReport:
        """See `BaseBackend.check`."""
        try:
            with self._viewing() as view:
                return view.check(progress or self._progress)
        except Tampered as error:  # not even readable
            from mycelium_sdk.backends.integrity import Integrity, IntegrityReport

            return IntegrityReport(Integrity.BROKEN, 0, (error.message,))

    @contextlib.contextmanager
    def export_checked(self, progress: Progress | None = None) -> Iterator[CheckedExport]:
        """See `BaseBackend.export_checked`."""
        with self._viewing() as view:
            fragments, checking = view.checked(progress or self._progress)
            yield CheckedExport(canonical.write_blob(self.owner, fragments), view, checking.report)

    def adopt(self, root: bytes, progress: Progress | None = None) -> None:
        """See `BaseBackend.adopt`."""
        from mycelium_sdk.backends.local import loading

        with self._connections.dedicated() as connection, self._connections.transaction(connection):
            loading.adopt(connection, self._sealers, root, progress or self._progress)

    def files(self) -> tuple[Path, ...]:
        """See `BaseBackend.files`."""
        return () if self.path is None else (self.path,)

    @property
    def keeps_links(self) -> bool:
        """See `BaseBackend.keeps_links`."""
        return True

    def link(self, chain: str) -> bytes | None:
        """See `BaseBackend.link`."""
        from mycelium_sdk.backends.local import links

        with self._connections.reading() as connection:
            return links.find(connection, self._sealers, chain)

    def set_link(self, chain: str, link: bytes | None) -> None:
        """See `BaseBackend.set_link`."""
        from mycelium_sdk.backends.local import links

        with self._connections.writing() as connection:
            links.put(connection, self._sealers, chain, link)

    def known_root(self) -> bytes | None:
        """See `BaseBackend.known_root`; a large store's root is kept in its file."""
        from mycelium_sdk.backends.local import rootcache

        opened = self._file.now()
        if opened.root is not None:
            changes, root = opened.root
            with opened.connections.reading() as connection:
                if writing.stats(connection).change_counter == changes:
                    return root
        return rootcache.find(opened.connections, self._sealers)

    def keep_root(self, changes: int, root: bytes) -> None:
        """See `BaseBackend.keep_root`."""
        from mycelium_sdk.backends.local import rootcache

        opened = self._file.now()
        opened.root = changes, root
        rootcache.keep(opened.connections, self._sealers, changes, root)

    def candidates(self, query: Query, limit: int) -> Candidates:
        """See `Backend.candidates`."""
        opened = self._file.now()
        search, vectors = self._prepared(opened)
        with opened.connections.reading() as connection:
            similarity = None if vectors is None else partial(vectors.similar, connection, query)
            return search.find(connection, query, limit, similarity)

    def records(self, ids: Sequence[str]) -> list[StoredRecord]:
        """See `Backend.records`."""
        numbers = [number for text in ids if (number := writing.number_of(text)) is not None]
        with self._connections.reading() as connection:
            rows = genuine(connection, self._sealers.of, numbers)
        return [
            StoredRecord(str(row.id), row.fragment, row.copies, row.id, row.session, row.time) for row in rows
        ]

    @property
    def place(self) -> str:
        """See `BaseBackend.place`."""
        return "memory of this process" if self.path is None else str(self.path)

    def ids_of(self, records: Sequence[Record]) -> list[str | None]:
        """See `BaseBackend.ids_of`."""
        keys = [row_of(Record(record.content, tuple(sorted(set(record.tags))))).key for record in records]
        with self._connections.reading() as connection:
            numbers = [writing.id_of(connection, key) for key in keys]
        return [None if number is None else str(number) for number in numbers]

    def prepare(self) -> None:
        """Do now what the next recall would have to do first: index and embed what is not yet."""
        self._prepared(self._file.now())

    def stats(self) -> Stats:
        """See `Backend.stats`."""
        with self._connections.reading() as connection:
            return writing.stats(connection)

    def close(self) -> None:
        """See `Backend.close`."""
        self._file.close()

    def _prepared(self, opened: Opened) -> tuple[Search, Vectors | None]:
        # Imported at the first recall: remembering needs neither analyzer nor stemmer.
        if opened.search is None:
            from mycelium_sdk.backends.local.search import Search

            opened.search = Search(opened.connections, self._progress)
        if self._embed is not None and opened.vectors is None:
            from mycelium_sdk.backends.local.vectors import Vectors

            opened.vectors = Vectors(opened.connections, self._embed, self._progress)
        search, vectors = opened.search, opened.vectors
        search.refresh()
        if vectors is not None:
            vectors.refresh()
        return search, vectors


def _path(owner: str, path: str | os.PathLike[str] | None) -> Path | None:
    if path is None:
        return Home.default().memory_file(owner)
    name = os.fspath(path)
    if name == ":memory:":
        return None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InputError("the path of the memory is not a path", hint="leave it out for the default")
    return Path(name).expanduser()


def _keys(path: Path | None, folder: str | os.PathLike[str] | None) -> Keys:
    if path is None:
        return Keys(None)
    if folder is None:
        return Keys(lambda: Home.default().integrity)
    chosen = Path(folder).expanduser()
    return Keys(lambda: ensure_private_folder(chosen))
