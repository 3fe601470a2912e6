"""Accepting records from callers."""

from __future__ import annotations

import enum
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk.canonical import encode, fragment, parse
from mycelium_sdk.errors import InputError, NonCanonical
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES, Record
from mycelium_sdk.stored import StoredRecord

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"


class _Tag(enum.StrEnum):
    PREFERENCE = "pref"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (None, ()),
        ([], ()),
        (["b", "a"], ("a", "b")),
        (("a",), ("a",)),
        ({"b", "a"}, ("a", "b")),
        (iter(["b", "a", "b"]), ("a", "b")),
        (["a,b"], ("a,b",)),
        ([" "], (" ",)),
        ([_Tag.PREFERENCE], ("pref",)),
        (["\uff5e", "\U0001f602"], ("\uff5e", "\U0001f602")),
        (["caf\u00e9", "cafe\u0301"], ("cafe\u0301", "caf\u00e9")),
    ],
)
def test_tags_are_a_set(tags: Any, expected: tuple[str, ...]) -> None:
    assert Record.from_input("a", tags) == Record("a", expected)


@pytest.mark.parametrize("content", ["a", " ", "\x00", "\n", "\u2028", "\U0001f602", "x" * 1000])
def test_any_text_is_accepted_as_it_is(content: str) -> None:
    assert Record.from_input(content).content == content


@pytest.mark.parametrize(
    ("content", "tags", "says"),
    [
        ("", None, "content is empty"),
        (None, None, "content is None instead of a string"),
        (b"a", None, "content is of type bytes"),
        (7, None, "content is of type int"),
        ("a\ud800", None, "content holds a lone surrogate"),
        ("\ud83d\ude02", None, "content holds a lone surrogate"),
        ("a", "pref", "one string instead of a list"),
        ("a", b"pref", "one string instead of a list"),
        ("a", 7, "tags is of type int"),
        ("a", {"pref": True}, "tags is of type dict"),
        ("a", [""], "a tag is empty"),
        ("a", ["b", None], "a tag is None"),
        ("a", [["b"]], "a tag is of type list"),
        ("a", ["\udcff"], "a tag holds a lone surrogate"),
    ],
)
def test_what_is_not_text_is_refused(content: Any, tags: Any, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        Record.from_input(content, tags)
    assert caught.value.exit_code == 2
    assert caught.value.__cause__ is None


def test_the_limit_counts_bytes_of_content_and_tags() -> None:
    assert Record.from_input("\u00e9" * 3, ["ab", "\U0001f602"], max_bytes=12)
    with pytest.raises(InputError, match="12 bytes of text; the limit is 11"):
        Record.from_input("\u00e9" * 3, ["ab", "\U0001f602"], max_bytes=11)
    assert Record.from_input("a" * DEFAULT_MAX_RECORD_BYTES)
    with pytest.raises(InputError, match="1048577 bytes"):
        Record.from_input("a" * DEFAULT_MAX_RECORD_BYTES, ["b"])


def test_no_error_repeats_the_text() -> None:
    secret = "the code of the door is 4711"
    for content, tags in (
        (secret + "\ud800", None),
        ("a", [secret + "\ud800"]),
        (secret, secret),
        (secret, [7]),
    ):
        with pytest.raises(InputError) as caught:
            Record.from_input(content, tags, max_bytes=1000)
        assert "4711" not in f"{caught.value!r} {caught.value.hint} {vars(caught.value)}"
    with pytest.raises(InputError) as caught:
        Record.from_input(secret, max_bytes=3)
    assert "4711" not in f"{caught.value!r} {caught.value.hint}"


def test_a_subclass_of_str_becomes_plain_text() -> None:
    class Loud(str):
        __slots__ = ()

        def __str__(self) -> str:
            return self.upper()

    record = Record.from_input(Loud("a"), [Loud("b")])
    assert (type(record.content), type(record.tags[0])) == (str, str)
    assert record == Record("a", ("b",))


@given(st.text(min_size=1), st.lists(st.text(min_size=1)))
def test_what_is_accepted_comes_back_from_a_blob(content: str, tags: list[str]) -> None:
    record = Record.from_input(content, tags)
    assert list(parse(encode(OWNER, [record]), OWNER, max_bytes=1 << 20)) == [record]


@given(st.text(min_size=1), st.lists(st.text(min_size=1)), st.randoms())
def test_order_and_repeats_of_tags_do_not_matter(content: str, tags: list[str], random: Any) -> None:
    shuffled = [*tags, *tags[:1]]
    random.shuffle(shuffled)
    assert Record.from_input(content, shuffled) == Record.from_input(content, set(tags))


def test_records_do_not_change() -> None:
    record = Record("a", ("b",))
    with pytest.raises(FrozenInstanceError):
        record.content = "c"  # type: ignore[misc]
    assert hash(record) == hash(Record("a", ("b",)))


def test_a_stored_record_reads_its_fragment() -> None:
    record = Record("caf\u00e9", ("a", "b"))
    stored = StoredRecord("7", fragment(record), copies=1, sequence=7, session=None, time=None)
    assert stored.record == record
    edited = StoredRecord(
        "7", stored.fragment.replace('"a"', "1"), copies=1, sequence=7, session=None, time=None
    )
    with pytest.raises(NonCanonical):
        _ = edited.record
