"""Encoding: against `json.dumps`, the order of records, and what cannot be encoded."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk import canonical
from mycelium_sdk.errors import InputError
from mycelium_sdk.records import Record

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"

# Few characters, so that prefixes and equal texts are common: those that `order_key` uses, their neighbours,
# and two whose UTF-16 order is not their code-point order.
_tricky = st.text(alphabet="\x00\x01\x02\x03a\xff\uff5e\U0001f602", max_size=4)
_tricky_records = st.builds(
    Record, _tricky, st.lists(_tricky, max_size=3).map(lambda tags: tuple(sorted(tags)))
)
_records = st.builds(Record, st.text(), st.lists(st.text(max_size=8), max_size=4).map(tuple))


def _plain_key(record: Record) -> tuple[str, list[str]]:
    return record.content, sorted(record.tags)


@given(st.lists(_records, max_size=6))
def test_a_blob_is_what_the_json_module_writes(records: list[Record]) -> None:
    value = {
        "records": [
            {"tags": sorted(record.tags), "content": record.content}
            for record in sorted(records, key=_plain_key)
        ],
        "owner": OWNER,
    }
    expected = json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")
    assert canonical.encode(OWNER, records) == expected


@given(_records)
def test_a_fragment_is_what_the_json_module_writes(record: Record) -> None:
    value = {"content": record.content, "tags": sorted(record.tags)}
    text = canonical.fragment(record)
    assert text == json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert canonical.record_from_fragment(text) == Record(record.content, tuple(sorted(record.tags)))


@given(_tricky_records, _tricky_records)
def test_order_keys_compare_as_records_do(one: Record, other: Record) -> None:
    first, second = canonical.order_key(one), canonical.order_key(other)
    assert (first < second) == (_plain_key(one) < _plain_key(other))
    assert (first == second) == (one == other)


@given(_records, _records)
def test_order_keys_of_any_text_compare_as_records_do(one: Record, other: Record) -> None:
    first, second = canonical.order_key(one), canonical.order_key(other)
    assert (first < second) == (_plain_key(one) < _plain_key(other))
    assert (first == second) == (_plain_key(one) == _plain_key(other))


def test_order_keys_are_stored_so_their_bytes_are_frozen() -> None:
    assert canonical.order_key(Record("")) == b"\x00"
    assert canonical.order_key(Record("a\x00\u00e9", ("c", ""))) == b"a\x00\xff\xc3\xa9\x00\x02\x00\x02c\x00"


def test_order_keys_of_all_short_records_are_in_order() -> None:
    texts = [
        "".join(letters) for size in range(3) for letters in itertools.product("\x00\x02\xff", repeat=size)
    ]
    tag_lists = [(), *((tag,) for tag in texts), *itertools.combinations_with_replacement(sorted(texts), 2)]
    records = [Record(content, tags) for content in texts for tags in tag_lists]
    by_value = sorted(records, key=_plain_key)
    assert sorted(records, key=canonical.order_key) == by_value
    assert len({canonical.order_key(record) for record in records}) == len(records)


@given(st.lists(st.tuples(_tricky_records, st.integers(1, 3)), max_size=5, unique_by=lambda pair: pair[0]))
def test_copies_are_written_one_by_one(pairs: list[tuple[Record, int]]) -> None:
    ordered = sorted(pairs, key=lambda pair: canonical.order_key(pair[0]))
    written = b"".join(
        canonical.write_blob(OWNER, [(canonical.fragment(record), copies) for record, copies in ordered])
    )
    assert written == canonical.encode(OWNER, [record for record, copies in pairs for _ in range(copies)])


def test_a_blob_is_written_in_chunks() -> None:
    text = canonical.fragment(Record("x" * 1000))
    chunks = list(canonical.write_blob(OWNER, [(text, 500)]))
    assert max(map(len, chunks)) < 70_000
    blob = b"".join(chunks)
    assert len(blob) == len(canonical.encode(OWNER, [])) + 500 * len(text) + 499
    assert canonical.root(chunks) == canonical.root(blob) == canonical.root(memoryview(blob))


@pytest.mark.parametrize("record", [Record("a\ud800"), Record("\udc00\ud800"), Record("a", ("\udfff",))])
def test_lone_surrogates_are_refused_without_repeating_the_text(record: Record) -> None:
    for encode in (canonical.fragment, canonical.order_key):
        with pytest.raises(InputError) as caught:
            encode(record)
        assert "surrogate" in str(caught.value)
        assert caught.value.__cause__ is None


def test_two_code_units_are_not_the_character_they_would_spell() -> None:
    with pytest.raises(InputError):
        canonical.encode(OWNER, [Record("\ud83d\ude02")])
    assert canonical.fragment(Record("\U0001f602")) == '{"content":"\\ud83d\\ude02","tags":[]}'


@pytest.mark.parametrize("owner", ["", "G", OWNER.lower(), OWNER[:-1] + "I", OWNER + "\n", 'G"'])
def test_a_blob_of_nobody_is_refused_before_anything_is_read(owner: str) -> None:
    with pytest.raises(InputError):
        canonical.write_blob(owner, [])
    with pytest.raises(InputError):
        canonical.encode(owner, [])
