"""Parsing: everything canonical is accepted, nothing else is, and a stream is never held whole."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mycelium_sdk import canonical
from mycelium_sdk.errors import (
    InputError,
    LimitExceeded,
    NonCanonical,
    UsageError,
    VerificationError,
    WrongOwner,
)
from mycelium_sdk.records import Record
from mycelium_sdk.verdicts import Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
OTHER = "GAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3QZ6Q"
BIG = 1 << 30

_text = st.text(alphabet=st.sampled_from('ab"\\/\x00\x1f\x7f\n\u00e9\uff5e\U0001f602]}{,:'), max_size=5)
_records = st.builds(Record, _text, st.lists(_text, max_size=3).map(lambda tags: tuple(sorted(tags))))
_memories = st.lists(_records, max_size=4)


def _parse(source: canonical.Source, owner: str = OWNER) -> list[Record]:
    if not isinstance(source, bytes):
        return list(canonical.parse(source, owner, max_bytes=BIG))
    # Who wants no records is told the same.
    try:
        records = list(canonical.parse(source, owner, max_bytes=BIG))
    except VerificationError as error:
        _check_says(source, owner, error)
        raise
    assert canonical.check(source, owner, max_bytes=BIG) == len(records)
    return records


def _check_says(source: bytes, owner: str, error: VerificationError) -> None:
    with pytest.raises(type(error)) as caught:
        canonical.check(source, owner, max_bytes=BIG)
    assert str(caught.value) == str(error)


def _reason(source: canonical.Source) -> Reason | None:
    with pytest.raises(NonCanonical) as caught:
        _parse(source)
    assert caught.value.verdict is Verdict.NON_CANONICAL
    return caught.value.reason


def _blob(*fragments: str) -> bytes:
    return f'{{"owner":"{OWNER}","records":[{",".join(fragments)}]}}'.encode()


def _is_canonical(blob: bytes) -> bool:
    """The rules of the format again, in the slow and obvious way."""
    try:
        value = json.loads(blob.decode("ascii"))
        records = value["records"]
        texts = [record["content"] for record in records] + [
            tag for record in records for tag in record["tags"]
        ]
        "".join(texts).encode("utf-8")
        ordered = {
            "owner": OWNER,
            "records": sorted(
                ({"content": record["content"], "tags": sorted(record["tags"])} for record in records),
                key=lambda record: (record["content"], record["tags"]),
            ),
        }
        return json.dumps(ordered, sort_keys=True, separators=(",", ":")).encode() == blob
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _accepts(blob: bytes) -> bool:
    try:
        records = _parse(blob)
    except VerificationError:
        return False
    assert canonical.encode(OWNER, records) == blob
    return True


@given(_memories, st.data())
def test_round_trip_in_any_pieces(records: list[Record], data: st.DataObject) -> None:
    blob = canonical.encode(OWNER, records)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(blob)), max_size=6)))
    pieces = [blob[start:end] for start, end in zip([0, *cuts], [*cuts, len(blob)], strict=True)]
    digest = canonical.BlobDigest()
    pairs = list(canonical.parse_fragments(pieces, OWNER, max_bytes=len(blob), digest=digest))
    assert [record for _, record in pairs] == sorted(
        records, key=lambda record: (record.content, record.tags)
    )
    assert [text for text, _ in pairs] == [canonical.fragment(record) for _, record in pairs]
    assert digest.root() == canonical.root(blob)


@given(_memories, st.data())
def test_any_changed_byte_is_noticed(records: list[Record], data: st.DataObject) -> None:
    blob = bytearray(canonical.encode(OWNER, records))
    root = canonical.root(blob)
    place = data.draw(st.integers(0, len(blob) - 1))
    blob[place] ^= data.draw(st.integers(1, 255))
    assert canonical.root(blob) != root
    # A change inside a text can spell another canonical blob, which is then read, and has its own root.
    assert _accepts(bytes(blob)) == _is_canonical(bytes(blob))


@settings(max_examples=400)
@given(
    _memories,
    st.integers(0, 400),
    st.integers(0, 12),
    st.sampled_from(
        [
            "",
            '"',
            "\\",
            "\\u0041",
            "\\u00E9",
            "\\/",
            "\\ud800",
            ",",
            "]}",
            "{",
            " ",
            "\n",
            "0",
            "NaN",
            "\\",
            '","tags":[',
        ]
    ),
)
@example([], 79, 0, '{"content":"","tags":[]},')
@example([Record("a")], 92, 1, "\\ud83d\\ude02")
@example([Record("a")], 92, 1, "\\ude02\\ud83d")
def test_acceptance_is_that_of_the_plain_rules(records: list[Record], at: int, gone: int, put: str) -> None:
    blob = canonical.encode(OWNER, records)
    at %= len(blob) + 1
    changed = blob[:at] + put.encode() + blob[at + gone :]
    assert _accepts(changed) == _is_canonical(changed)


@given(_memories)
def test_every_proper_prefix_is_cut_off(records: list[Record]) -> None:
    blob = canonical.encode(OWNER, records)
    for end in range(len(blob)):
        assert _reason(blob[:end]) is Reason.TRUNCATED
        assert _reason([blob[:end]]) is Reason.TRUNCATED


@given(_memories, st.binary(min_size=1, max_size=3))
def test_nothing_may_follow(records: list[Record], rest: bytes) -> None:
    blob = canonical.encode(OWNER, records)
    expected = Reason.TRAILING if rest.isascii() else Reason.NOT_ASCII
    assert _reason(blob + rest) is expected
    assert _reason([blob, rest]) is expected


def test_nothing_may_follow_a_blob_that_fills_the_buffer_exactly() -> None:
    size = 64 * 1024
    blob = canonical.encode(OWNER, [Record("a")])
    blob = canonical.encode(OWNER, [Record("a" * (size - len(blob) + 1))])
    assert len(blob) == size
    assert len(_parse([blob])) == 1
    assert _reason([blob, b"\n"]) is Reason.TRAILING
    assert _reason([blob, blob]) is Reason.TRAILING


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"content":"a\\u0009","tags":[]}', Reason.ENCODING),
        ('{"content":"a\t","tags":[]}', Reason.ENCODING),
        ('{"content":"a\x7f","tags":[]}', Reason.ENCODING),
        ('{"content":"\\x","tags":[]}', Reason.ENCODING),
        ('{"content":"\\u12","tags":[]}', Reason.ENCODING),
        ('{"content":"\\uD83D\\uDE02","tags":[]}', Reason.ENCODING),
        ('{"content":"\\u007F","tags":[]}', Reason.ENCODING),
        ('{"content":"\\ud800","tags":[]}', Reason.NOT_TEXT),
        ('{"content":"a","tags":["\\udc00\\ud800"]}', Reason.NOT_TEXT),
        ('{"content":"a","tags":["b","a"]}', Reason.TAG_ORDER),
        ('{"content":"a","tags":["\\ud83d\\ude02","\\uff5e"]}', Reason.TAG_ORDER),
        ('{"content":"a","tags":[["b"]]}', Reason.STRUCTURE),
        ('{"content":"a","tags":[null]}', Reason.STRUCTURE),
        ('{"content":"a","tags":["b",]}', Reason.STRUCTURE),
        ('{"content":"a","tags":[,"b"]}', Reason.STRUCTURE),
        ('{"content":"a","tags":{}}', Reason.STRUCTURE),
        ('{"content":{"content":"a"},"tags":[]}', Reason.STRUCTURE),
        ('{"content":1e400,"tags":[]}', Reason.STRUCTURE),
        ('{"content":"a","tags":[],"tags":[]}', Reason.STRUCTURE),
        ('{"content":"a","time":1,"tags":[]}', Reason.STRUCTURE),
        ('{"tags":[],"content":"a"}', Reason.STRUCTURE),
        ('{"content":"a","tags":[]} ', Reason.STRUCTURE),
        ("[" * 100_000, Reason.STRUCTURE),
        ('{"content":"a","tags":' + "[" * 100_000, Reason.STRUCTURE),
        ("", None),
    ],
)
def test_one_bad_record_refuses_the_blob(record: str, reason: Reason | None) -> None:
    good = '{"content":"Z","tags":["x"]}'
    if reason is not None:
        assert _reason(_blob(good, record)) is reason
        assert _reason(_blob(record, good)) is reason
    else:
        assert _reason(_blob(good, record)) is Reason.STRUCTURE
        assert _reason(_blob(record, good)) is Reason.STRUCTURE


def test_a_bad_record_is_named_by_its_number() -> None:
    records = [f'{{"content":"{number:04}","tags":[]}}' for number in range(2000)]
    records[1500] = records[1500].replace("1", "\\u0031")
    with pytest.raises(NonCanonical, match="record 1501 "):
        _parse(_blob(*records))
    records[1500], records[1700] = records[1700], '{"content":"1500","tags":[]}'
    with pytest.raises(NonCanonical, match="record 1502 of the blob is out of order"):
        _parse(_blob(*records))


def test_order_is_checked_across_pieces() -> None:
    records = [canonical.fragment(Record(f"{number:06}" * 20)) for number in range(3000)]
    assert len(_parse(_blob(*records))) == 3000
    for index in range(0, 2999, 97):
        swapped = [*records]
        swapped[index], swapped[index + 1] = swapped[index + 1], swapped[index]
        assert _reason(_blob(*swapped)) is Reason.RECORD_ORDER


def test_what_remember_would_refuse_is_kept() -> None:
    records = [
        Record(""),
        Record("", ("",)),
        Record("a", ("", "", "b", "b")),
        Record("a", ("", "", "b", "b")),
    ]
    assert _parse(canonical.encode(OWNER, records)) == records


def test_another_owner_is_told_apart_from_garbage() -> None:
    blob = canonical.encode(OWNER, [Record("a")])
    with pytest.raises(WrongOwner) as caught:
        _parse(blob, OTHER)
    assert (caught.value.verdict, caught.value.reason) == (Verdict.WRONG_OWNER, Reason.OWNER)
    assert _reason(blob.replace(OWNER.encode(), b"G" * 56)) is Reason.STRUCTURE
    assert (
        _reason(blob.replace(OWNER.encode(), OWNER.replace("G", "\\u0047", 1).encode())) is Reason.STRUCTURE
    )


def test_a_malformed_expected_owner_is_the_callers_mistake() -> None:
    with pytest.raises(InputError):
        canonical.parse(b"", "GABC", max_bytes=BIG)


def test_the_size_limit_is_exact() -> None:
    blob = canonical.encode(OWNER, [Record("a" * 1000), Record("b" * 1000)])
    for limit in (len(blob) - 1, 100, 0):
        for source in (blob, io.BytesIO(blob), [blob[:7], blob[7:]]):
            with pytest.raises(LimitExceeded) as caught:
                list(canonical.parse(source, OWNER, max_bytes=limit))
            assert (caught.value.verdict, caught.value.reason) == (Verdict.LIMIT, Reason.SIZE)
    for source in (blob, io.BytesIO(blob), [blob[:7], blob[7:]]):
        assert len(list(canonical.parse(source, OWNER, max_bytes=len(blob)))) == 2


def test_an_endless_source_is_left_at_the_limit() -> None:
    def endless() -> Iterator[bytes]:
        yield canonical.encode(OWNER, [])[:-2]
        while True:
            yield b'{"content":"' + b"a" * 1000 + b'","tags":[]},'

    with pytest.raises(LimitExceeded):
        for _ in canonical.parse(endless(), OWNER, max_bytes=500_000):
            pass


def test_a_wrong_structure_is_refused_before_the_rest_is_read() -> None:
    read = 0

    def source() -> Iterator[bytes]:
        nonlocal read
        yield _blob()[:-2] + b'{"content":7,"tags":["'
        for _ in range(100):
            read += 1
            yield b"a" * 64 * 1024

    assert _reason(source()) is Reason.STRUCTURE
    assert read <= 2


def _many(count: int) -> Iterator[bytes]:
    pairs = (
        (canonical.fragment(Record(f"{number:07} " + "word " * 30, ("x", "y"))), 1) for number in range(count)
    )
    return canonical.write_blob(OWNER, pairs)


def test_a_stream_is_not_held_in_memory() -> None:
    tracemalloc.start()
    try:
        digest = canonical.BlobDigest()
        count = sum(1 for _ in canonical.parse(_many(30_000), OWNER, max_bytes=BIG, digest=digest))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == digest.records == 30_000
    assert digest.size > 5_000_000
    assert peak < 1_500_000


@pytest.mark.parametrize("unit", ["a", "\\", "\u00e9", '"'])
def test_a_record_longer_than_any_buffer(unit: str) -> None:
    record = Record(unit * 200_000, ("t" * 100_000, "u"))
    blob = canonical.encode(OWNER, [Record("!"), record, Record("\U0001f602")])
    pieces = (blob[start : start + 1009] for start in range(0, len(blob), 1009))
    assert _parse(pieces)[1] == record
    assert _reason(blob[:-60]) is Reason.TRUNCATED


def test_a_record_of_many_tags() -> None:
    record = Record("a", tuple(f"{number:06}" for number in range(50_000)))
    assert _parse(canonical.encode(OWNER, [record])) == [record]


def test_any_binary_source_will_do(tmp_path: Path) -> None:
    blob = canonical.encode(OWNER, [Record("a"), Record("b")])
    path = tmp_path / "blob.json"
    path.write_bytes(blob)
    with path.open("rb") as file:
        assert _parse(file) == [Record("a"), Record("b")]
        assert not file.closed
    sources: list[canonical.Source] = [bytearray(blob), memoryview(blob), iter([blob]), [b"", blob, b""]]
    for source in sources:
        assert _parse(source) == [Record("a"), Record("b")]
    with path.open(encoding="ascii") as text, pytest.raises(UsageError, match="str instead of bytes"):
        _parse(text)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        _parse(blob.decode())  # type: ignore[arg-type]


def test_what_the_source_raises_passes_through() -> None:
    def failing() -> Iterator[bytes]:
        yield canonical.encode(OWNER, [Record("a")])[:40]
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        _parse(failing())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", Reason.STRUCTURE),
        ('{"content":"a","tags":[]},', Reason.STRUCTURE),
        ('{"content":"a","tags":[]}{"content":"a","tags":[]}', Reason.STRUCTURE),
        ('{"content":"\u00e9","tags":[]}', Reason.NOT_ASCII),
        ('{"content":"a","tags":["b","a"]}', Reason.TAG_ORDER),
        ('{"content":"\\u0061","tags":[]}', Reason.ENCODING),
        ('{"content":"\\ud800","tags":[]}', Reason.NOT_TEXT),
    ],
)
def test_an_edited_fragment_is_refused(text: str, reason: Reason) -> None:
    with pytest.raises(NonCanonical) as caught:
        canonical.record_from_fragment(text)
    assert caught.value.reason is reason


_SECRET = "the code of the door is 4711"


@pytest.mark.parametrize(
    "record",
    [
        f'{{"content":"{_SECRET}\\/","tags":[]}}',
        f'{{"content":"{_SECRET}\t","tags":[]}}',
        f'{{"content":"{_SECRET}\\ud800","tags":[]}}',
        f'{{"content":"a","tags":["{_SECRET}","a"]}}',
        f'{{"content":"{_SECRET}","tags":7}}',
        f'{{"content":"{_SECRET}',
    ],
)
def test_refusals_never_repeat_the_memory(record: str) -> None:
    def chain(error: BaseException | None) -> Iterator[Any]:
        while error is not None:
            yield error
            error = error.__cause__

    with pytest.raises(NonCanonical) as caught:
        _parse(_blob(record))
    for error in chain(caught.value):
        assert _SECRET not in f"{error!r} {error} {vars(error)}"
