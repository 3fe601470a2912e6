"""Canonical bytes back to records, refusing whatever is not exactly canonical.

The blob is read as a stream and checked batch by batch, so memory is bounded by the largest record. A batch
goes one of two ways: the quick one is in `batches`, and whatever it does not take is left to the other. That
one takes complete records by a regular expression, has the JSON scanner decode them and the one encoder give
the same text again, and says what is wrong. What is accepted is by construction what `write_blob` writes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from mycelium_sdk.canonical.batches import Batch, parts_of, quick_batch
from mycelium_sdk.canonical.encoding import CHUNK_BYTES, END, fragment, header
from mycelium_sdk.errors import InputError, LimitExceeded, NonCanonical, UsageError, WrongOwner
from mycelium_sdk.records import Record
from mycelium_sdk.strkey import check_account, is_account
from mycelium_sdk.verdicts import Reason

Source = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]

# The grammar of a record, possessive (`*+`) so that nothing is remembered for backtracking: time is linear
# in the text and memory constant. A string's escapes are only skipped here; whether they are the right ones
# is for the JSON scanner and the re-encoding to say. The repetition of whole records is an ordinary one: the
# possessive one of a group that fails half-way ends at the wrong place in CPython 3.11.2.
_OPEN = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'
_STRING = _OPEN + '"'
_UP_TO_TAGS = rf'\{{"content":{_STRING},"tags":\['
_UP_TO_END = rf"{_UP_TO_TAGS}(?:{_STRING}(?:,{_STRING})*+)?+"
_RECORD = rf"{_UP_TO_END}\]\}}"


def _cut(literal: str) -> str:
    """A pattern for every beginning of the literal."""
    return "(?:" + "|".join(re.escape(literal[:length]) for length in range(len(literal) + 1)) + ")"


_record = re.compile(_RECORD, re.DOTALL)
_batch = re.compile(rf"(?:{_RECORD},)*(?:{_RECORD}(?=\]\}}))?", re.DOTALL)
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


class _Count(BlobDigest):
    """The same for who has no use for the root."""

    __slots__ = ()

    def update(self, chunk: bytes) -> None:
        self.size += len(chunk)


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
) -> Fragments:
    """The same as `parse`, giving each record with its fragment, which is what a backend stores."""
    at_hand = isinstance(source, (bytes, bytearray, memoryview))
    return Fragments(_parsed(source, owner, max_bytes, digest)[0], at_hand=at_hand)


def check(source: Source, owner: str, *, max_bytes: int, digest: BlobDigest | None = None) -> int:
    """How many records the canonical blob of `owner` holds, once all of it is found to be one.

    The same checks and errors as `parse`, for who wants none of the records.
    """
    batches, counted = _parsed(source, owner, max_bytes, digest)
    for _ in batches:
        pass
    return counted.records


class Fragments(Iterator[tuple[str, Record]]):
    """(fragment, record) pairs of a blob, read while they are asked for."""

    def __init__(self, batches: Iterator[Batch], *, at_hand: bool) -> None:
        self.at_hand = at_hand
        """Whether all of the blob is in memory, so that reading it waits for nobody."""
        self._batches = batches
        self._pairs = itertools.chain.from_iterable(map(_pairs, batches))

    def __iter__(self) -> Iterator[tuple[str, Record]]:
        return self._pairs

    def __next__(self) -> tuple[str, Record]:
        return next(self._pairs)

    def batches(self) -> Iterator[Batch]:
        """The same in columns, for who needs no `Record` of each; instead of the pairs, not besides."""
        return self._batches


def _pairs(batch: Batch) -> Iterable[tuple[str, Record]]:
    return zip(batch.fragments(), map(Record, batch.contents, batch.tags), strict=True)


def _parsed(
    source: Source, owner: str, max_bytes: int, digest: BlobDigest | None
) -> tuple[Iterator[Batch], BlobDigest]:
    check_account(owner)
    counted = _Count() if digest is None else digest
    return _batches(_Buffer(_slices(source, max_bytes), counted, max_bytes), owner), counted


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


def _batches(buffer: _Buffer, owner: str) -> Iterator[Batch]:
    """The blob's records, some at a time, each batch checked before it is given."""
    buffer.fill()
    _take_header(buffer, owner)
    previous: _Key = ("", ())
    ended = buffer.text.startswith(END, buffer.position)
    while not ended:
        text, start = buffer.text, buffer.position
        batch, end = quick_batch(text, start)
        if batch is None:
            match = _batch.match(text, start)
            end = start if match is None else match.end()
            if end == start:
                _need_more(buffer)
                continue
            ended = text[end - 1] != ","
            batch = _decoded(text[start : end if ended else end - 1], buffer.digest.records)
        buffer.position = end
        _require_order(previous, batch, buffer.digest.records)
        buffer.digest.records += len(batch.contents)
        previous = batch.contents[-1], batch.tags[-1]
        yield batch
    buffer.position += len(END)
    if buffer.position < len(buffer.text) or buffer.fill():
        raise NonCanonical("there are bytes after the end of the blob", reason=Reason.TRAILING)


_Key = tuple[str, tuple[str, ...]]


def _require_order(previous: _Key, batch: Batch, before: int) -> None:
    contents = batch.contents
    if previous[0] < contents[0] and all(map(operator.lt, contents, contents[1:])):
        return
    for number, key in enumerate(zip(contents, batch.tags, strict=True), before + 1):
        if key < previous:
            raise NonCanonical(f"record {number} of the blob is out of order", reason=Reason.RECORD_ORDER)
        previous = key


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


def _decoded(batch: str, before: int) -> Batch:
    """Complete records that commas separate, `before` of them having gone before."""
    try:
        values = json.loads(f"[{batch}]")
        contents = [value["content"] for value in values]
        tags = [tuple(value["tags"]) for value in values]
        texts = [fragment(record) for record in map(Record, contents, tags)]
    except ValueError:  # an escape or a control character that JSON does not know, or a lone surrogate
        raise _fault(batch, before) from None
    if ",".join(texts) != batch:
        raise _fault(batch, before)
    return Batch(contents, tags, [parts_of(text) for text in texts])


def _fault(batch: str, before: int) -> NonCanonical:
    """What is wrong with the first record of a batch that is not canonical."""
    for number, match in enumerate(_record.finditer(batch), before + 1):
        try:
            _decode_one(match[0], f"record {number} of the blob")
        except NonCanonical as error:
            return error
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
