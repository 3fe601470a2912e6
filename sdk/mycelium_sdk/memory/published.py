"""Which published versions still hold a memory: what forgetting it here does not reach.

Looked into are the blobs in the home folder, the `file://` copies of every anchor that was ever verified
here, and a person's own files that follow the latest blob. What lies elsewhere, or cannot be read, is named
as well, as not looked into; what is not at its address any more, as that.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.backends.arguments import checked_text
from mycelium_sdk.blobs.file_uri import is_file_uri, path_from_file_uri, path_to_file_uri
from mycelium_sdk.blobs.files import file_digest, open_blob_file
from mycelium_sdk.errors import BlobError, InputError
from mycelium_sdk.memory.publishing import latest_copies

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.facts import KnownAnchor
    from mycelium_sdk.stored import StoredRecord

__all__ = ["PublishedVersion", "published_with", "selected"]

_BEGINNING = b'{"content":'
"""No text can hold this: quotes within a text are escaped. So it tells where each record begins."""

_HEADER = b'{"owner":"'
_END = b"]}"
_BLOB_NAME = re.compile(r"[0-9a-f]{64}\.json")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A published copy of the memory that holds a text, or may hold it.

    `version` is the anchor's, None for a blob that no anchor seen here points to. `uri` is where the copy is:
    the anchor's address, else the file's. `root`: the 32 bytes it is known by. `network`: the passphrase of
    the anchor's network, '' where there is no anchor, and `contract` its contract. `seen`: the text was found
    in it; if not, nobody could look into it from here. `missing`: that is because there is no file at its
    address, in a folder that is there: it was purged or moved away, unless the address is another machine's.
    """

    version: int | None
    uri: str
    root: bytes
    network: str
    seen: bool
    contract: str = ""
    missing: bool = False


def selected(
    backend: BaseBackend,
    *,
    id: str | None,  # noqa: A002 - the name users know
    tag: str | None,
) -> Iterator[StoredRecord]:
    """What `forget` with these arguments would forget. Raises `InputError` unless exactly one is given."""
    if (id is None) == (tag is None):
        raise InputError("give either an id or a tag", hint="recall gives ids and tags")
    if id is not None:
        yield from backend.records([checked_text(id, "the id")])
        return
    assert tag is not None  # noqa: S101 - checked above
    written = json.dumps(checked_text(tag, "the tag"))
    for stored in backend.iter_records():
        if written in stored.fragment and tag in stored.record.tags:  # reading each would take long
            yield stored


def published_with(
    fragments: Collection[bytes],
    anchors: Iterable[tuple[str, KnownAnchor]],
    blobs: Path,
    owner: str,
) -> list[PublishedVersion]:
    """The published versions that hold one of the records with these fragments, or may: the newest first.

    `anchors`: (network passphrase, anchor), all of `owner`. `blobs`: the home folder's blobs. Each file is
    read as a stream.
    """
    if not fragments:
        return []
    wanted = {fragment.removeprefix(_BEGINNING) for fragment in fragments}
    answers: dict[Path, bool | None] = {}

    def holds(path: Path) -> bool | None:
        if path not in answers:
            answers[path] = _holds(path, wanted)
        return answers[path]

    found: dict[tuple[str, str, bytes, str], PublishedVersion] = {}
    known = list(anchors)
    for network, anchor in known:
        own = blobs / f"{anchor.root.hex()}.json"
        named = _file_of(anchor.uri)
        # Copies of one version are the same bytes, so that the first that can be read tells of all.
        answer = next((told for path in (own, named) if path and (told := holds(path)) is not None), None)
        gone = not anchor.uri or (named is not None and named.parent == blobs and not named.exists())
        if answer or (answer is None and not gone):
            uri = anchor.uri or path_to_file_uri(own)
            version = PublishedVersion(
                anchor.version,
                uri,
                anchor.root,
                network,
                seen=answer is True,
                contract=anchor.contract,
                missing=answer is None and named is not None and _is_missing(named),
            )
            found[network, anchor.contract, anchor.root, uri] = version
    anchored = {version.root for version in found.values()}
    for path, root in _own_blobs(blobs):
        if root not in anchored and holds(path):
            uri = path_to_file_uri(path)
            found["", "", root, uri] = PublishedVersion(None, uri, root, "", seen=True)
    for path in _followers(anchor for _, anchor in known):
        copied = file_digest(path) if _begins_as_of(path, owner) and holds(path) else None
        if copied is not None:
            which = next((one for one in known if one[1].root == copied), None)
            uri = path_to_file_uri(path)
            number, network, contract = (
                (None, "", "") if which is None else (which[1].version, which[0], which[1].contract)
            )
            found[network, contract, copied, uri] = PublishedVersion(
                number, uri, copied, network, seen=True, contract=contract
            )
    return sorted(found.values(), key=lambda one: (-(one.version or 0), one.network, one.contract, one.uri))


def _followers(anchors: Iterable[KnownAnchor]) -> Iterable[Path]:
    """Where a person's own file may follow the latest blob: beside what was published under its name."""
    named = ((_file_of(anchor.uri), anchor.root) for anchor in anchors)
    return dict.fromkeys(copy for path, root in named if path for copy in latest_copies(path, root))


def _begins_as_of(path: Path, owner: str) -> bool:
    """Whether what lies there begins like a blob of this owner."""
    beginning = b'%b%b"' % (_HEADER, owner.encode("ascii"))
    try:
        with open_blob_file(path) as file:
            return file.read(len(beginning)) == beginning
    except (BlobError, OSError):
        return False


def _own_blobs(blobs: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(blobs.glob("*.json")):
        if _BLOB_NAME.fullmatch(path.name):
            yield path, bytes.fromhex(path.stem)


def _file_of(uri: str | None) -> Path | None:
    if not uri or not is_file_uri(uri):
        return None
    try:
        return path_from_file_uri(uri)
    except BlobError:  # what was anchored by hand need not be an address
        return None


def _is_missing(path: Path) -> bool:
    """Whether there is no file, in a folder that can be looked into. Without the folder nothing is known: it
    may be another machine's, or on a disk that is not there now."""
    try:
        path.lstat()
    except FileNotFoundError:
        return path.parent.is_dir()
    except OSError:
        return False
    return False


def _holds(path: Path, wanted: set[bytes]) -> bool | None:
    """Whether the blob at this path holds one of the records; None where nobody can tell."""
    try:
        with open_blob_file(path) as file:
            return any(not wanted.isdisjoint(batch) for batch in _records(file))
    except (BlobError, OSError):
        return None


def _records(file: BinaryIO) -> Iterator[list[bytes]]:
    """The records of a blob, without what each begins with, in lists; memory is bounded by the largest.

    Raises `BlobError` if the file is no plain blob.
    """
    rest = file.read(_CHUNK_BYTES)
    if not rest.startswith(_HEADER):
        raise BlobError("the file is no plain blob")
    while chunk := file.read(max(_CHUNK_BYTES, len(rest))):  # so that a long record is split only a few times
        *whole, rest = (rest + chunk).split(_BEGINNING)
        yield [record[:-1] for record in whole]  # without the comma
    *whole, last = rest.split(_BEGINNING)
    yield [*(record[:-1] for record in whole), last.removesuffix(_END)]
