"""Records to canonical bytes, and bytes to a root.

A blob is `{"owner":"G...","records":[...]}`, byte for byte what `json.dumps` writes with sorted keys and no
white space, once tags and records are sorted. It is put together from one fragment per record, so that an
export costs a concatenation and a hash.
"""

from __future__ import annotations

import hashlib
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING

from mycelium_sdk.errors import InputError
from mycelium_sdk.strkey import check_account

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mycelium_sdk.records import Record

CHUNK_BYTES = 64 * 1024
END = "]}"


def header(owner: str) -> str:
    """What a blob of `owner` begins with. The address needs no escaping."""
    return f'{{"owner":"{owner}","records":['


def fragment(record: Record) -> str:
    """The canonical JSON text of one record, ASCII. Tags are sorted, and kept if they repeat.

    Raises `InputError` if a string holds a lone surrogate: two different strings would otherwise have equal
    bytes.
    """
    tags = record.tags
    if len(tags) > 1:
        tags = tuple(sorted(tags))
    return f'{{"content":{_quote(record.content)},"tags":[{",".join(map(_quote, tags))}]}}'


def order_key(record: Record) -> bytes:
    """Bytes whose plain comparison is the order of records in a blob; different records have different keys.

    Content is written in UTF-8, whose byte order is the order of code points, with 0x00 as 0x00 0xFF, and
    ended by 0x00; each tag follows as 0x02 and the same. The end of a text (0x00, then nothing or 0x02) so
    comes before every continuation (0x00 0xFF, or a byte above 0x00), and an absent tag before any tag.
    Raises `InputError` for a lone surrogate.
    """
    return _order_key((record.content, *sorted(record.tags)))


def order_keys(contents: Iterable[str], tags: Iterable[tuple[str, ...]]) -> list[bytes]:
    """The same for many records, given in columns; the tags of each are sorted."""
    return [
        _order_key((content, *those))
        if those or not content.isascii() or "\0" in content
        else content.encode("ascii") + b"\x00"
        for content, those in zip(contents, tags, strict=True)
    ]


def _order_key(texts: Iterable[str]) -> bytes:
    try:
        return b"\x02".join([text.encode("utf-8").replace(b"\x00", b"\x00\xff") + b"\x00" for text in texts])
    except UnicodeEncodeError:
        raise _lone_surrogate() from None


def write_blob(owner: str, fragments: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """The blob of `owner` in chunks of about 64 KiB, from (fragment, copies) pairs in canonical order.

    Several fragments may come as one, joined by commas. The pairs are trusted: they come from `fragment` and
    are sorted by `order_key`. Raises `InputError` for an owner that is not an account, at once.
    """
    return _chunks(header(check_account(owner)), fragments)


def _chunks(head: str, fragments: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    separator = ""
    parts: list[str] = []
    size = 0
    yield head.encode("ascii")
    for text, copies in fragments:
        for _ in range(copies):
            parts.append(text)
            size += len(text)
            if size >= CHUNK_BYTES:
                yield (separator + ",".join(parts)).encode("ascii")
                separator, size = ",", 0
                parts.clear()
    if parts:
        yield (separator + ",".join(parts)).encode("ascii")
    yield END.encode("ascii")


def encode(owner: str, records: Iterable[Record]) -> bytes:
    """The blob of `owner` and its records, in whatever order they come; equal records are kept, each of them.

    Raises `InputError` for an owner that is not an account, and for text with a lone surrogate.
    """
    ordered = sorted(records, key=lambda record: (record.content, sorted(record.tags)))
    return b"".join(write_blob(owner, ((fragment(record), 1) for record in ordered)))


def root(blob: bytes | bytearray | memoryview | Iterable[bytes]) -> bytes:
    """The 32 bytes that commit to a blob: the SHA-256 of its bytes, given whole or in chunks."""
    if isinstance(blob, (bytes, bytearray, memoryview)):
        return hashlib.sha256(blob).digest()
    digest = hashlib.sha256()
    for chunk in blob:
        digest.update(chunk)
    return digest.digest()


def _quote(text: str) -> str:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise _lone_surrogate() from None
    return encode_basestring_ascii(text)


def _lone_surrogate() -> InputError:
    return InputError(
        "the record holds a lone surrogate, which is not text",
        hint="decode the source with the right encoding, e.g. UTF-8",
    )
