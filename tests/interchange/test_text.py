"""Plain text, and the encodings and limits that all text formats share."""

from __future__ import annotations

import pytest

from mycelium_sdk.interchange import lines
from tests.interchange.sources import NOW, read, refusal, texts

TEXT = b"\n  one\ntwo  \n\n \t \nthree\x85\xe2\x80\xa8four\r\n\r\nfive".replace(b"\x85", b"")


def test_each_paragraph_or_each_line_is_a_memory() -> None:
    assert texts("text", TEXT, by_line=False) == ["one\ntwo", "three\u2028four", "five"]
    assert texts("text", TEXT, by_line=True) == ["one", "two", "three\u2028four", "five"]
    assert texts("text", b"") == texts("text", b"\n \n") == []


def test_they_get_the_tags_the_session_and_the_time_of_now() -> None:
    (entry,) = read("text", b"x", tags=("b", "a"), session="s")
    assert (entry.record.tags, entry.session, entry.time, entry.sequence) == (("a", "b"), "s", NOW, None)


@pytest.mark.parametrize("kind", ["text", "markdown", "jsonl"])
def test_what_is_no_utf_8_is_named_by_its_line(kind: str) -> None:
    good = b'{"content":"x"}\n'
    assert refusal(kind, good + b"caf\xe9\n").startswith("line 2: it is not valid UTF-8")
    assert refusal(kind, good + b"\xed\xa0\x80").startswith("line 2: it is not valid UTF-8")
    assert refusal(kind, good + b"a\0b").startswith("line 2: it holds a zero byte")
    assert "UTF-16" in refusal(kind, "x".encode("utf-16"))
    assert refusal(kind, b"\0" * 100).startswith("line 1: ")


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    assert texts("text", b"0123456789") == ["0123456789"]
    assert "longer than 10 bytes" in refusal("text", b"01234567890")


def test_a_paragraph_without_an_end_does_not_either() -> None:
    message = refusal("text", b"a\n\n" + b"0123456789\n" * 10, max_record_bytes=20)
    assert message.startswith("line 3: the paragraph is too long")
    assert texts("text", b"0123456789\n" * 10, max_record_bytes=20, by_line=True) == ["0123456789"] * 10
