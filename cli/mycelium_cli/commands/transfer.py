"""`mycelium memory import` and `export`: memories from elsewhere, and to elsewhere."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from mycelium_cli.groups import command
from mycelium_cli.output import bytes_to_stdout, memories, progress, report_progress, shown, to_stderr
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from mycelium_cli.known_here import KnownHere
    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.interchange import Intake
    from mycelium_sdk.memory.importing import Import
    from mycelium_sdk.stored import StoredRecord

_STORE = ("--network", "--wallet", "--backend", "--home")

# The names of mycelium_sdk.interchange, written out so that `--help` need not load it. A test compares them.
_IMPORT_FORMATS = ("auto", "jsonl", "markdown", "text", "chat", "blob")
_EXPORT_FORMATS = ("jsonl", "markdown", "blob")
_MARKDOWN_SUFFIXES = (".md", ".markdown")
_TEXT_SUFFIXES = (".txt", ".text")


@command(
    "import",
    example="mycelium memory import notes.md --tag notes\n"
    "mycelium memory import conversations.json --format chat --dry-run\n"
    "mycelium memory export - | ssh elsewhere mycelium memory import -",
    shared=_STORE,
    params=[
        click.Argument(["file"]),
        click.Option(
            ["--format", "kind"],
            type=click.Choice(_IMPORT_FORMATS),
            default="auto",
            show_default=True,
            help="What FILE is; auto looks at how it begins and is called, and says what it took it for.",
        ),
        click.Option(
            ["--tag", "tags"],
            multiple=True,
            metavar="TAG",
            help="A tag for each; may be given more than once.",
        ),
        click.Option(["--session"], metavar="NAME", help="The conversation of those that name none."),
        click.Option(["--lines", "by_line"], is_flag=True, help="Plain text: each line is a memory."),
        click.Option(["--headings"], is_flag=True, help="Markdown: the heading above is a tag."),
        click.Option(
            ["--replace"],
            is_flag=True,
            help="A blob: drop what is here and not in it, also what is not anchored.",
        ),
        click.Option(
            ["--dry-run"], is_flag=True, help="Check everything and say what would be; write nothing."
        ),
    ],
)
def import_(
    file: str,
    kind: str,
    tags: tuple[str, ...],
    session: str | None,
    *,
    by_line: bool,
    headings: bool,
    replace: bool,
    dry_run: bool,
) -> None:
    """Remember everything in FILE; `-` reads stdin. All of it or, if anything is wrong with it, nothing.

    \b
    jsonl     one JSON object a line: content, and tags, session, time
              (Unix seconds) or not; what `export` writes comes back as it was
    markdown  each bullet, nested or not, and each paragraph is a memory
    text      each paragraph is a memory; with --lines each line
    chat      JSON with roles: a list of messages, {"messages": [...]}, the
              exports of ChatGPT and Claude; the role becomes a tag, the
              conversation a session
    blob      the canonical blob of this owner: its records are added to
              what is here; --replace puts them in its place

    What is here already stays as it is and is counted. Needs no chain, and a passphrase only for a new
    wallet, which on the network `local` is made if missing, except by --dry-run and for a blob, which belongs
    to a wallet already.
    """
    from mycelium_sdk.backends.arguments import checked_session
    from mycelium_sdk.errors import UsageError
    from mycelium_sdk.interchange import Intake, detect, read_entries
    from mycelium_sdk.interchange.detection import HEAD_BYTES
    from mycelium_sdk.memory.importing import import_entries
    from mycelium_sdk.records import Record

    _require_name(file)
    checked_session(session)
    Record.from_input("x", tags)  # a bad tag is refused as what it is, not as a fault of the first line
    if kind == "auto" and (by_line or headings):
        kind = "text" if by_line or file.lower().endswith(_TEXT_SUFFIXES) else "markdown"
    current = current_session()
    with _opened(file) as opened, contextlib.ExitStack() as stack:
        source = opened
        if kind == "auto":
            head = opened.read(HEAD_BYTES)
            detected = detect(head, "" if file == "-" else file)
            kind, source = detected.format, _rewound(head, opened)
            to_stderr(f"note: {detected}")
        _require_fitting(kind, by_line=by_line, headings=headings, replace=replace)
        if kind == "blob" and tags:
            raise UsageError("a blob's records keep their tags", hint="leave out --tag")
        memory = stack.enter_context(current.memory(make_wallet=kind != "blob" and not dry_run))
        stack.enter_context(progress("importing"))
        backend = memory.backend
        intake = Intake(memory.owner, time.time(), tags, session, backend.max_record_bytes)
        entries = read_entries(source, kind, intake, by_line=by_line, headings=headings)
        done = import_entries(backend, entries, replace=replace, dry_run=dry_run, progress=report_progress)
    current.result(
        {
            "format": kind,
            "imported": done.imported,
            "present": done.present,
            "repeated": done.repeated,
            "skipped": intake.skipped,
            "dropped": done.dropped,
            "dry_run": dry_run,
        },
        _import_line(done, intake, dry_run=dry_run),
    )


def _import_line(done: Import, intake: Intake, *, dry_run: bool) -> str:
    details = []
    if done.present:
        details.append(f"{done.present} {'was' if done.present == 1 else 'were'} there already")
    if done.repeated:
        details.append(f"{done.repeated} repeated")
    if intake.skipped:
        details.append(f"{intake.skipped} without text")
    if done.dropped:
        details.append(f"{done.dropped} {'would be ' if dry_run else ''}dropped")
    said = "would import" if dry_run else "imported"
    return f"{said} {memories(done.imported)}" + (f" ({', '.join(details)})" if details else "")


def _require_name(file: str) -> None:
    if not file:
        from mycelium_sdk.errors import UsageError

        raise UsageError("FILE is empty", hint="give the path of a file, or `-` for stdin or stdout")


def _require_fitting(kind: str, *, by_line: bool, headings: bool, replace: bool) -> None:
    from mycelium_sdk.errors import UsageError

    for option, given, wanted in (
        ("--lines", by_line, "text"),
        ("--headings", headings, "markdown"),
        ("--replace", replace, "blob"),
    ):
        if given and kind != wanted:
            raise UsageError(
                f"{option} goes with --format {wanted}, and this is {kind}",
                hint=f"leave {option} out, or say --format {wanted} if it is that",
            )


@contextlib.contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    from mycelium_sdk.errors import InputError
    from mycelium_sdk.files import file_errors

    if file == "-":
        if sys.stdin is None:
            raise InputError("the memories should come from stdin, which is closed", hint="pipe them in")
        yield sys.stdin.buffer
        return
    path = Path(file).expanduser()
    with file_errors(path, "read", InputError):
        source = path.open("rb")
    with source:
        yield source


class _Rewound(io.RawIOBase):
    """A source whose beginning was read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what io.BufferedReader gives
        """See `io.RawIOBase`."""
        data = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _rewound(head: bytes, rest: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_Rewound(head, rest), 1 << 18)


@command(
    "export",
    example="mycelium memory export memories.jsonl\nmycelium memory export notes.md\n"
    "mycelium memory export - --format blob | sha256sum",
    shared=_STORE,
    params=[
        click.Argument(["file"], default="-"),
        click.Option(
            ["--format", "kind"],
            type=click.Choice(_EXPORT_FORMATS),
            help="What to write [default: markdown for a FILE in .md, else jsonl].",
        ),
        click.Option(
            ["--force"],
            is_flag=True,
            help="Replace FILE if it exists; by no memories at all only if they were not lost.",
        ),
        click.Option(
            ["--genuine"],
            is_flag=True,
            help="Leave out what was changed behind the memory's back, where export is refused otherwise.",
        ),
    ],
)
def export(file: str, kind: str | None, *, force: bool, genuine: bool) -> None:
    """Write all memories to FILE, or to stdout (`-`, the default), oldest first.

    \b
    jsonl     one JSON object a line; loses nothing: `import` into an empty
              memory gives the same memory, with order, sessions and times
    markdown  a list for people; keeps content and tags, but no session, time
              or number of copies, and no white space around a text
    blob      the canonical blob, whose SHA-256 is the memory's root; keeps
              content, tags and copies

    FILE is complete or not there at all, and only its owner can read it. Needs no chain and no passphrase.
    """
    from mycelium_cli.known_here import known_here
    from mycelium_sdk.errors import InputError, Tampered
    from mycelium_sdk.files import create_private, replace_private
    from mycelium_sdk.memory.exporting import require_unchanged
    from mycelium_sdk.memory.own_files import refuse_own_files

    _require_name(file)
    current = current_session()
    path = None if file == "-" else Path(file).expanduser()
    kind = _kind_of(path, kind, json=current.given.json, genuine=genuine)
    if path is not None:
        _require_free(path, force=force)
    tally = _Tally()
    with current.memory() as memory:
        if path is not None:
            refuse_own_files(path, memory.context, memory.backend)
        chunks = _chunks(memory.backend, kind, tally, genuine=genuine)
        with progress("exporting"):
            known = None
            with contextlib.suppress(Tampered):  # of which `require_unchanged` has the say
                known = known_here(memory)
            if known is not None and known.lost:
                to_stderr(f"warning: {known.why}; {known.advice}")
            if path is not None and force:
                chunks = _not_for_nothing(chunks, tally, path, known)
            if not genuine and not require_unchanged(memory.backend, report_progress):
                to_stderr("warning: nothing on this machine vouches for the memory; it is exported as it is")
            if path is not None:
                write = replace_private if force else create_private
                write(path, chunks, kind=InputError)
        if path is None:
            with contextlib.closing(chunks):  # also where whoever reads stdout has gone
                bytes_to_stdout(_shown(chunks, kind))
    _say_what_is_missing(tally)
    if path is not None:
        document = {"path": file, "format": kind, "records": tally.records}
        current.result(document, f"exported {memories(tally.records)} to {shown(file)} ({kind})")


def _not_for_nothing(
    chunks: Generator[bytes], tally: _Tally, path: Path, known: KnownHere | None
) -> Generator[bytes]:
    """The same; no memories do not replace what may be the only copy left, unless it is known why there are
    none."""
    from mycelium_sdk.errors import InputError

    yield from chunks
    surely_empty = known is not None and known.why is None and not tally.left_out
    if tally.records or surely_empty or not path.exists() or not path.stat().st_size:
        return
    advice = "" if known is None or known.advice is None else f"{known.advice}; "
    raise InputError(
        f"there are no memories to export, so {path} was not replaced",
        hint=f"{advice}to export nothing all the same, choose another name",
    )


def _kind_of(path: Path | None, kind: str | None, *, json: bool, genuine: bool) -> str:
    """What to write. Raises UsageError where the options do not go together."""
    from mycelium_sdk.errors import UsageError

    if json and path is None:
        raise UsageError("--json needs a FILE, since stdout is the export", hint="leave out one of them")
    if genuine and kind == "blob":
        raise UsageError("--genuine does not go with --format blob", hint="use jsonl, which loses nothing")
    if kind is not None:
        return kind
    return "markdown" if path is not None and path.suffix.lower() in _MARKDOWN_SUFFIXES else "jsonl"


def _say_what_is_missing(tally: _Tally) -> None:
    if tally.lossy:
        to_stderr(
            f"warning: Markdown cannot keep {memories(tally.lossy)} exactly (white space at the ends, tabs,"
            " control characters); jsonl loses nothing"
        )
    if tally.left_out:
        to_stderr(f"warning: left out {memories(tally.left_out)}, changed behind the memory's back")


@dataclass(slots=True)
class _Tally:
    """How many records went out (each copy counts), how many memories were not kept exactly, and how many
    were left out."""

    records: int = 0
    lossy: int = 0
    left_out: int = 0


def _chunks(backend: BaseBackend, kind: str, tally: _Tally, *, genuine: bool) -> Generator[bytes]:
    """The export, counted as it goes."""
    from mycelium_sdk import canonical
    from mycelium_sdk.interchange.jsonl import json_line
    from mycelium_sdk.interchange.markdown import bullet, survives

    if kind == "blob":
        with backend.snapshot() as view:
            tally.records = view.stats.records
            yield from canonical.write_blob(backend.owner, view.fragments())
        return
    with _going_out(backend, tally, genuine=genuine) as everything:
        for stored in everything:
            tally.records += stored.copies
            if kind == "jsonl":
                yield json_line(stored)
                continue
            written = bullet(stored.record)
            if not survives(stored.record, written):
                tally.lossy += 1
            yield written.encode("utf-8")


@contextlib.contextmanager
def _going_out(backend: BaseBackend, tally: _Tally, *, genuine: bool) -> Iterator[Iterable[StoredRecord]]:
    from mycelium_sdk.memory.exporting import genuine_memories, in_order_of_arrival

    if genuine:
        found, tally.left_out = genuine_memories(backend)
        yield found
        return
    with in_order_of_arrival(backend, report_progress) as everything:
        yield everything


def _shown(chunks: Iterable[bytes], kind: str) -> Iterator[bytes]:
    """What a terminal may be shown: Markdown is text as it was remembered, the rest is ASCII."""
    for chunk in chunks:
        yield shown(chunk.decode("utf-8")).encode() if kind == "markdown" and sys.stdout.isatty() else chunk


def _require_free(path: Path, *, force: bool) -> None:
    from mycelium_sdk.errors import InputError

    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise InputError(f"{path} is not a regular file", hint="give the path of a file, or `-` for stdout")
    if not force:
        raise InputError(f"{path} exists already", hint="choose another name, or replace it: --force")
