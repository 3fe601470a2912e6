"""Canonical bytes back to records, refusing whatever is not exactly canonical.

The blob is read as a stream and checked batch by batch: a regular expression takes as many complete records
as the buffer holds, the JSON scanner decodes them, and the one encoder must give the same text again. So
memory is bounded by the largest record, and what is accepted is by construction what `write_blob` writes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from mycelium_sdk.canonical.encoding import CHUNK_BYTES, END, fragment, header
from mycelium_sdk.errors import InputError, LimitExceeded, NonCanonical, UsageError, WrongOwner
from mycelium_sdk.records import Record
from mycelium_sdk.strkey import check_account, is_account
from mycelium_sdk.verdicts import Reason

Source = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]

# The grammar of a record, possessive (`*+`) so that nothing is remembered for backtracking: time is linear
# in the text and memory constant. A string's escapes are only skipped here; whether they are the right ones
# is for the JSON scanner and the re-encoding to say.
_OPEN = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = _OPEN + '"'
_UP_TO_TAGS = rf'\{{"content":{_STRING},"tags":\['
_UP_TO_END = rf"{_UP_TO_TAGS}(?:{_STRING}(?:,{_STRING})*+)?+"
_RECORD = rf"{_UP_TO_END}\]\}}"


def _cut(literal: str) -> str:
    """A pattern for every beginning of the literal."""
    return "(?:" + "|".join(re.escape(literal[:length]) for length in range(len(literal) + 1)) + ")"


_record = re.compile(_RECORD, re.DOTALL)
_batch = re.compile(rf"(?:{_RECORD},)*+(?:{_RECORD}(?=\]\}}))?+", re.DOTALL)
_cut_off_record = re.compile(
    "|".join(
        (
            _cut('{"content":'),
            rf'\{{"content":{_OPEN}\\?',
            rf'\{{"content":{_STRING}' + _cut(',"tags":['),
            rf"{_UP_TO_TAGS}(?:{_STRING},)*+(?:{_OPEN}\\?)?",
            rf"{_UP_TO_END}(?:\](?:\}}\]?)?)?",
        )
    ),
    re.DOTALL,
)
_any_header = re.compile(r'\{"owner":"([A-Z2-7]{56})","records":\[')


class BlobDigest:
    """Root, size in bytes and number of records of a blob, gathered while it is parsed; complete once
    parsing has ended without an error.
    """

    __slots__ = ("_sha256", "records", "size")

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.size = 0
        self.records = 0

    def update(self, chunk: bytes) -> None:
        """Take the next bytes of the blob."""
        self._sha256.update(chunk)
        self.size += len(chunk)

    def root(self) -> bytes:
        """SHA-256 of the bytes seen so far."""
        return self._sha256.digest()


def parse(
    source: Source, owner: str, *, max_bytes: int, digest: BlobDigest | None = None
) -> Iterator[Record]:
    """Read the canonical blob of `owner` record by record.

    `source` is the bytes, a binary file object, or an iterable of chunks. Records come out before the end
    of the blob has been seen, so the caller must keep none of them unless the iteration ends without an
    error. `digest`, if given, hashes in the same pass.

    Raises `NonCanonical`, `WrongOwner` or `LimitExceeded` (more than `max_bytes` in all), each with a
    `reason`; `InputError` at once if `owner` is not an account. What the source itself raises passes
    through.
    """
    return (record for _, record in parse_fragments(source, owner, max_bytes=max_bytes, digest=digest))


def parse_fragments(
    source: Source, owner: str, *, max_bytes: int, digest: BlobDigest | None = None
) -> Iterator[tuple[str, Record]]:
    """The same as `parse`, giving each record with its fragment, which is what a backend stores."""
    check_account(owner)
    digest = BlobDigest() if digest is None else digest
    return _read(_Buffer(_slices(source, max_bytes), digest, max_bytes), owner)


def record_from_fragment(text: str) -> Record:
    """The record that a fragment writes. Raises `NonCanonical` if `fragment` would write it differently."""
    if not isinstance(text, str) or not text.isascii():  # a database may hold anything once it was edited
        raise NonCanonical("a stored record is not ASCII", reason=Reason.NOT_ASCII)
    if not _record.fullmatch(text):
        raise NonCanonical("a stored record has not the shape of a record", reason=Reason.STRUCTURE)
    return _decode_one(text, "a stored record")


class _Buffer:
    """The text of a blob that is not consumed yet."""

    def __init__(self, chunks: Iterator[bytes], digest: BlobDigest, max_bytes: int) -> None:
        self._chunks = chunks
        self._max_bytes = max_bytes
        self.digest = digest
        self.text = ""
        self.position = 0

    def fill(self) -> bool:
        """Drop what is consumed and read more; False at the end of the source.

        Reads at least as much as is left over, so that a long record is scanned a bounded number of times
        per byte.
        """
        rest = self.text[self.position :]
        parts = [rest]
        missing = max(CHUNK_BYTES, len(rest))
        while missing > 0 and (chunk := next(self._chunks, None)) is not None:
            self.digest.update(chunk)
            if self.digest.size > self._max_bytes:
                raise _too_large(self._max_bytes)
            if not chunk.isascii():
                raise NonCanonical("the blob is not ASCII", reason=Reason.NOT_ASCII)
            parts.append(chunk.decode("ascii"))
            missing -= len(chunk)
        self.text = "".join(parts)
        self.position = 0
        return len(parts) > 1


def _read(buffer: _Buffer, owner: str) -> Iterator[tuple[str, Record]]:
    buffer.fill()
    _take_header(buffer, owner)
    previous: tuple[str, tuple[str, ...]] = ("", ())
    ended = buffer.text.startswith(END, buffer.position)
    while not ended:
        text, start = buffer.text, buffer.position
        match = _batch.match(text, start)
        end = start if match is None else match.end()
        if end == start:
            _need_more(buffer)
            continue
        buffer.position = end
        ended = text[end - 1] != ","
        for pair in _decode(text[start : end if ended else end - 1], buffer.digest.records):
            record = pair[1]
            buffer.digest.records += 1
            key = (record.content, record.tags)
            if key < previous:
                raise NonCanonical(
                    f"record {buffer.digest.records} of the blob is out of order", reason=Reason.RECORD_ORDER
                )
            previous = key
            yield pair
    buffer.position += len(END)
    if buffer.position < len(buffer.text) or buffer.fill():
        raise NonCanonical("there are bytes after the end of the blob", reason=Reason.TRAILING)


def _take_header(buffer: _Buffer, owner: str) -> None:
    expected = header(owner)
    text = buffer.text
    if len(text) < len(expected + END) and (expected + END).startswith(text):
        raise _truncated()
    if text.startswith(expected):
        buffer.position = len(expected)
        return
    other = _any_header.match(text)
    if other and is_account(other[1]):
        raise WrongOwner(f"the blob belongs to {other[1]}, not to {owner}")
    raise NonCanonical("the blob does not begin with its owner and records", reason=Reason.STRUCTURE)


def _need_more(buffer: _Buffer) -> None:
    """Read on if the record at the position is merely incomplete, else refuse."""
    if not _cut_off_record.fullmatch(buffer.text, buffer.position):
        raise NonCanonical(
            f"record {buffer.digest.records + 1} of the blob has not the shape of a record",
            reason=Reason.STRUCTURE,
        )
    if not buffer.fill():
        raise _truncated()


def _decode(batch: str, before: int) -> list[tuple[str, Record]]:
    """Fragments and records of complete records separated by commas, `before` of them having gone before."""
    try:
        pairs = []
        for value in json.loads(f"[{batch}]"):
            record = Record(value["content"], tuple(value["tags"]))
            pairs.append((fragment(record), record))
        if ",".join([text for text, _ in pairs]) == batch:
            return pairs
    except ValueError:  # an escape or a control character that JSON does not know, or a lone surrogate
        pass
    return [_locate(batch, before)]


def _locate(batch: str, before: int) -> tuple[str, Record]:
    """Raise for the first record of a batch that is not canonical."""
    for number, match in enumerate(_record.finditer(batch), before + 1):
        _decode_one(match[0], f"record {number} of the blob")
    raise AssertionError("unreachable: records that are canonical one by one are so together")


def _decode_one(text: str, what: str) -> Record:
    try:
        value = json.loads(text)
    except ValueError:  # not chained: the cause holds the text
        raise _misspelt(what) from None
    record = Record(value["content"], tuple(value["tags"]))
    try:
        again = fragment(record)
    except InputError:
        raise NonCanonical(
            f"{what} holds a lone surrogate, which is not text", reason=Reason.NOT_TEXT
        ) from None
    if list(record.tags) != sorted(record.tags):
        raise NonCanonical(f"the tags of {what} are out of order", reason=Reason.TAG_ORDER)
    if again != text:
        raise _misspelt(what)
    return record


def _slices(source: Source, max_bytes: int) -> Iterator[bytes]:
    """The source in pieces that are not empty and not large, whatever it is."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        view = memoryview(source).cast("B")
        if len(view) > max_bytes:
            raise _too_large(max_bytes)
        return _pieces([view])
    read: Any = getattr(source, "read", None)
    return _pieces(source if read is None else iter(lambda: read(CHUNK_BYTES) or None, None))


def _pieces(chunks: Iterable[Any]) -> Iterator[bytes]:
    for chunk in chunks:
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise UsageError(
                f"the source of a blob gives {type(chunk).__name__} instead of bytes",
                hint="open files in mode 'rb'",
            )
        for start in range(0, len(chunk), CHUNK_BYTES):
            yield bytes(chunk[start : start + CHUNK_BYTES])


def _misspelt(what: str) -> NonCanonical:
    return NonCanonical(f"{what} is not written the canonical way", reason=Reason.ENCODING)


def _truncated() -> NonCanonical:
    return NonCanonical("the blob is cut off", reason=Reason.TRUNCATED)


def _too_large(max_bytes: int) -> LimitExceeded:
    return LimitExceeded(f"the blob is larger than the limit of {max_bytes} bytes")
