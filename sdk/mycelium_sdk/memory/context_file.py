"""The context file of a published blob: what the blob does not say of its records, signed by their owner.

A blob holds texts and tags only. `<blob name>.context.json` beside it holds, for each record of the blob in
its order (copies included), its sequence, session and time. One line of ASCII, byte for byte what
`json.dumps` writes with sorted keys and separators `,` and `:`:

    {"format":"mycelium-context/1","owner":"G...","records":[[3,"monday",1767225600123456],[1,null,null]],
     "root":"<64 hex digits>","signature":"<128 hex digits>"}

(here on two lines). A record is `[sequence, session, time]`: an int from 0 to 2^63 - 1, of which only the
order counts; null or a name that is not empty; null or the microseconds since 1970, UTC, an int whose
magnitude is below 2^33 seconds (the year 2242), up to where microseconds survive a double and back. A time in
seconds is written as `round(time * 10^6)` and read as `microseconds / 10^6`, in double precision; one that is
not finite or out of range is written as null.

`signature` is the owner's Ed25519 signature of `DOMAIN` followed by the SHA-256 of the file up to, and
without, `,"signature"`. That is longer than the 32 bytes that a Stellar transaction's signature is of.

A file is untrusted until that signature was checked, which needs no passphrase, and only then parsed. Both
are one pass in constant memory; the second hashes again, so that a file that is edited in between is noticed
at its end. It is metadata: the chain commits to the root only, and an owner may sign another context for it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, BinaryIO

from mycelium_sdk.backends.values import Columns, Contexts
from mycelium_sdk.blobs.base import DEFAULT_MAX_BYTES
from mycelium_sdk.errors import ContextUnusable
from mycelium_sdk.strkey import check_account, decode_account

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mycelium_sdk.stored import StoredRecord

__all__ = [
    "DOMAIN",
    "FORMAT",
    "MAX_SECONDS",
    "MAX_SESSION_BYTES",
    "ContextFile",
    "Sign",
    "header",
    "signature_part",
    "signed_part",
]

FORMAT = "mycelium-context/1"
DOMAIN = b"mycelium-context/1\n"
"""What is signed begins with this, so that the signature means nothing elsewhere."""

MAX_SECONDS = 1 << 33
"""Times are below this, in seconds, before and after 1970."""

MAX_SESSION_BYTES = 1 << 19
"""The longest that a session's name is written, with its escapes: 512 KiB."""

Sign = Callable[[bytes], bytes]
"""Gives the owner's Ed25519 signature of a message, 64 bytes."""

_MICROSECONDS = 10**6
_MAX_SEQUENCE = (1 << 63) - 1
_CHUNK_BYTES = 64 * 1024
_SIGNATURE_LENGTH = len(',"signature":""}') + 128
_ROOT_LENGTH = len('],"root":""') + 64

# Possessive, so that time is linear in the text: what a string's escapes mean is for the scanner and for the
# re-encoding to say.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_RECORD = rf"\[(?:0|[1-9][0-9]{{0,18}}),(?:null|{_STRING}),(?:null|0|-?[1-9][0-9]{{0,15}})\]"
_string = re.compile(_STRING, re.DOTALL)
_batch = re.compile(rf"(?:{_RECORD},)*+(?:{_RECORD}(?=\]))?+", re.DOTALL)
_signature = re.compile(rb',"signature":"([0-9a-f]{128})"\}')


def header(owner: str) -> str:
    """What a context file of `owner` begins with. The address needs no escaping."""
    return f'{{"format":"{FORMAT}","owner":"{check_account(owner)}","records":['


def signed_part(owner: str, root: bytes, stored: Iterable[StoredRecord]) -> Iterator[bytes]:
    """All of a context file up to its signature, in chunks.

    `stored` are the records of the blob with this root, in canonical order.

    Raises:
        ContextUnusable: a record's sequence or session cannot be written.
    """
    yield header(owner).encode("ascii")
    separator = ""
    parts: list[str] = []
    size = 0
    for one in stored:
        text = _written(one)
        for part in itertools.repeat(text, one.copies):
            parts.append(part)
            size += len(part)
            if size >= _CHUNK_BYTES:
                yield (separator + ",".join(parts)).encode("ascii")
                separator, size = ",", 0
                parts.clear()
    if parts:
        yield (separator + ",".join(parts)).encode("ascii")
    yield _root_part(root).encode("ascii")


def signature_part(digest: bytes, sign: Sign) -> bytes:
    """The end of a context file whose beginning has this SHA-256. What `sign` raises passes through."""
    return f',"signature":"{sign(DOMAIN + digest).hex()}"}}'.encode("ascii")


class ContextFile:
    """A context file whose signature fits: it is what `owner` has signed for the blob with `root`.

    `file` is open for reading and can be sought in. It is read by the constructor, and again by `contexts`.

    Raises:
        ContextUnusable: it is not; the message says why. Nothing of it was parsed.
    """

    def __init__(
        self, file: BinaryIO, owner: str, root: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self._file = file
        self._owner = owner
        self._root = root
        size = file.seek(0, 2)
        if size > max_bytes:
            raise ContextUnusable(f"it has {size} bytes; the limit is {max_bytes}")
        self._length = max(0, size - _SIGNATURE_LENGTH)
        found = _signature.fullmatch(self._read(self._length, _SIGNATURE_LENGTH))
        if found is None:
            raise ContextUnusable("it does not end with a signature: it is cut off, or no context file")
        digest = hashlib.sha256()
        for chunk in self._chunks():
            digest.update(chunk)
        self._digest = digest.digest()
        self._check_signature(bytes.fromhex(found[1].decode("ascii")))
        if self._read(max(0, self._length - _ROOT_LENGTH), _ROOT_LENGTH) != _root_part(root).encode("ascii"):
            raise ContextUnusable("it belongs to another blob of this owner")

    def contexts(self, records: int) -> Contexts:
        """What the file says of each of the blob's `records` records, in their order.

        Raises:
            ContextUnusable: the file is not written as it should be, changed meanwhile, or is about more or
                fewer records. Part of it may have been given by then, so nothing of it must have been used.
        """
        return Contexts(self._columns(records))

    def _columns(self, records: int) -> Iterator[Columns]:
        beginning, ending = header(self._owner), _root_part(self._root)
        buffer = _Buffer(self._chunks())
        buffer.fill()
        if not buffer.text.startswith(beginning):
            raise ContextUnusable("it is of another format or another owner")
        buffer.take(len(beginning))
        number = 0
        for columns in _entries(buffer, ending):
            number += len(columns[0])
            if number > records:
                raise ContextUnusable("it has more entries than the blob has records")
            yield columns
        while len(buffer.text) <= len(ending) and buffer.fill():
            pass
        if buffer.text != ending:
            raise ContextUnusable("it is not written as it should be after its last entry")
        if number < records:
            raise ContextUnusable("it has fewer entries than the blob has records")
        if buffer.digest.digest() != self._digest:
            raise ContextUnusable("it was changed while it was read")

    def _check_signature(self, signature: bytes) -> None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = Ed25519PublicKey.from_public_bytes(decode_account(self._owner))
            key.verify(signature, DOMAIN + self._digest)
        except (InvalidSignature, ValueError):
            raise ContextUnusable(
                "its signature is not this owner's: it was changed, or somebody else made it"
            ) from None

    def _read(self, start: int, length: int) -> bytes:
        try:
            self._file.seek(start)
            return self._file.read(length)
        except OSError as error:
            raise _unreadable(error) from error

    def _chunks(self) -> Iterator[bytes]:
        """The signed part."""
        try:
            self._file.seek(0)
            left = self._length
            while left and (chunk := self._file.read(min(left, _CHUNK_BYTES))):
                left -= len(chunk)
                yield chunk
        except OSError as error:
            raise _unreadable(error) from error


class _Buffer:
    """The text that is not taken yet, and the hash of all that was read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.digest = hashlib.sha256()
        self.text = ""

    def fill(self) -> bool:
        """Read more, at least as much as there is, so that a long entry is scanned a bounded number of times
        per byte; False at the end."""
        parts = [self.text]
        missing = max(_CHUNK_BYTES, len(self.text))
        while missing > 0 and (chunk := next(self._chunks, None)) is not None:
            self.digest.update(chunk)
            if not chunk.isascii():
                raise ContextUnusable("it is not ASCII")
            parts.append(chunk.decode("ascii"))
            missing -= len(chunk)
        self.text = "".join(parts)
        return len(parts) > 1

    def take(self, length: int) -> str:
        """The next so many characters."""
        taken, self.text = self.text[:length], self.text[length:]
        return taken


def _entries(buffer: _Buffer, ending: str) -> Iterator[Columns]:
    """What the buffer says up to the last entry, some at a time."""
    number = 0
    ended = buffer.text.startswith(ending)
    while not ended:
        found = _batch.match(buffer.text)
        end = 0 if found is None else found.end()
        if end == 0:
            if len(buffer.text) > 2 * MAX_SESSION_BYTES or not buffer.fill():
                raise ContextUnusable(f"entry {number + 1} of it is not written as it should be")
            continue
        ended = buffer.text[end - 1] != ","
        columns = _decoded(buffer.take(end).removesuffix(","), number)
        number += len(columns[0])
        yield columns


def _root_part(root: bytes) -> str:
    return f'],"root":"{root.hex()}"'


def _written(stored: StoredRecord) -> str:
    """The record's entry. Types are looked at, since rows may have been edited behind the store's back."""
    sequence, session, time = stored.sequence, stored.session, stored.time
    if type(sequence) is not int or not 0 <= sequence <= _MAX_SEQUENCE:
        raise ContextUnusable("a memory's place in the order of arrival is not one")
    name = "null" if session is None else _session(session)
    return f"[{sequence},{name},{_microseconds(time)}]"


def _session(session: object) -> str:
    if session is None:
        return "null"
    if not isinstance(session, str) or not session or not _is_text(session):
        raise ContextUnusable("a memory's session is not a name")
    written = encode_basestring_ascii(session)
    if len(written) > MAX_SESSION_BYTES:
        raise ContextUnusable("a memory's session has too long a name")
    return written


def _microseconds(time: object) -> str:
    # What is not finite is not within the bounds either.
    if isinstance(time, (int, float)) and -MAX_SECONDS < time < MAX_SECONDS:
        return str(round(time * _MICROSECONDS))
    return "null"


def _decoded(batch: str, before: int) -> Columns:
    """The contexts of complete entries separated by commas, `before` of them having gone before."""
    try:
        values = json.loads(f"[{batch}]")
    except ValueError:  # an escape or a control character that JSON does not know; not chained: it has text
        raise ContextUnusable(f"an entry of it after the first {before} is not JSON") from None
    sequences, sessions, microseconds = zip(*values, strict=True)
    if max(sequences) > _MAX_SEQUENCE:
        raise ContextUnusable("a sequence of it is out of range")
    times = [None if when is None else when / _MICROSECONDS for when in microseconds]
    known = [when for when in microseconds if when is not None] or [0]
    highest, lowest, bound = max(known), min(known), MAX_SECONDS * _MICROSECONDS
    if highest >= bound or lowest <= -bound:
        raise ContextUnusable("a time of it is out of range")
    # The pattern has one way to write a number; names of sessions are the only strings.
    for written in set(_string.findall(batch)):
        if _session(json.loads(written)) != written:
            raise ContextUnusable(f"an entry of it after the first {before} is not written as it should be")
    return sequences, sessions, times


def _unreadable(error: OSError) -> ContextUnusable:
    return ContextUnusable(f"it cannot be read ({error.strerror})")


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
