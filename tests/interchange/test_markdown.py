"""Markdown: which parts become memories, and which memories come back from Markdown as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk.interchange.markdown import bullet, survives
from mycelium_sdk.records import Record
from tests.interchange.sources import read, refusal, texts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("- a\n* b\n+ c", ["a", "b", "c"]),
        ("1. a\n2. b\n3) c", ["a", "b", "c"]),
        ("- a\n  - b\n    - c\n- d", ["a", "b", "c", "d"]),
        ("- a\n\t- b", ["a", "b"]),
        ("- a\n  wrapped\nlazily\n- b", ["a\nwrapped\nlazily", "b"]),
        ("- a\n\n  second paragraph\n\n    code\n- b", ["a\n\nsecond paragraph\n\n  code", "b"]),
        ("- a\n\nafter", ["a", "after"]),
        ("- [ ] to do\n- [x] done", ["[ ] to do", "[x] done"]),
        ("-\n- \n- a", ["a"]),
        ("-no bullet\n*emphasis* here", ["-no bullet\n*emphasis* here"]),
        ("one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ("in the year\n2019. it rained", ["in the year\n2019. it rained"]),
        ("before\n- a", ["before", "a"]),
        ("# h\ntext\n## h2 ##\n- a", ["text", "a"]),
        ("Title\n=====\ntext\n\nOther\n---\n- a", ["text", "a"]),
        ("a\n\n---\n\n***\nb", ["a", "b"]),
        ("- - -", []),
        ("- a:\n  ```\n  - b\n\n  # c\n  ```\n- d", ["a:\n```\n- b\n\n# c\n```", "d"]),
        ("- a\n```\n- b\n```\n- c", ["a", "```\n- b\n```", "c"]),
        ("- a\n\n```\nb\n```", ["a", "```\nb\n```"]),
        ("- a\n| b |\n|---|\n| c |\n- d", ["a", "| b |\n|---|\n| c |", "d"]),
        ("- a\n  | b |\n  |---|", ["a\n| b |\n|---|"]),
        ("for example\n```\nb\n```", ["for example\n```\nb\n```"]),
        ("~~~\n- a\n~~~\n- b", ["~~~\n- a\n~~~", "b"]),
        ("- a \\# b\n- \\- c\n- 1\\. d\n- \\\\e", ["a \\# b", "- c", "1. d", "\\e"]),
        ("#tag is no heading", ["#tag is no heading"]),
        ("- a\r\n- b\r\n", ["a", "b"]),
        ("", []),
    ],
)
def test_each_bullet_and_paragraph_is_a_memory(source: str, expected: list[str]) -> None:
    assert texts("markdown", source.encode(), headings=False) == expected


def test_headings_are_tags_only_if_asked_for() -> None:
    source = b"- a\n# One\n- b\n\nTwo\n---\nc\n#\n- d"
    found = read("markdown", source, headings=True, tags=("all",))
    assert [(entry.record.content, entry.record.tags) for entry in found] == [
        ("a", ("all",)),
        ("b", ("One", "all")),
        ("c", ("Two", "all")),
        ("d", ("all",)),
    ]
    assert {entry.record.tags for entry in read("markdown", source, headings=False)} == {()}


def test_tags_of_an_export_come_back() -> None:
    record = Record("text", ("-->", "a b", "c", "ä\n"))
    written = bullet(record)
    assert "-->" not in written[: written.rindex("-->")]
    assert [entry.record for entry in read("markdown", written.encode(), headings=False)] == [record]
    assert refusal("markdown", b'x\n- a\n  <!-- tags: ["a", 1] -->').startswith(
        "line 2: its tags are no list"
    )
    assert refusal("markdown", b"- a\n  <!-- tags: [secret] -->") == (
        "line 1: it is not valid JSON; nothing was imported"
    )


PIECES = st.sampled_from(
    ["a", "B c", " ", "\n", "\n\n", "- ", "* ", "+ ", "1. ", "12) ", "#", "# ", "\\", "```", "~~~", "<!--",
     "---", "===", "-->", "<!-- tags: [\"x\"] -->", "  ", "    ", "\t", "\r", "\0", "_", "> ",
     "|", "é", "😀", "\u2028"]
)  # fmt: skip
CONTENTS = st.lists(PIECES, min_size=1, max_size=8).map("".join) | st.text(min_size=1, max_size=20)
TAGS = st.lists(PIECES | st.text(min_size=1, max_size=5), max_size=3, unique=True)


@given(CONTENTS, TAGS)
def test_what_survives_comes_back_and_the_rest_is_known_not_to(content: str, tags: list[str]) -> None:
    record = Record(content, tuple(sorted(tags)))
    written = bullet(record)
    if survives(record, written):
        around = f"- before\n{written}- after\n".encode()
        found = [entry.record for entry in read("markdown", around, headings=False)]
        assert found == [Record("before"), record, Record("after")]
    else:
        odd = any(text != text.strip() for text in (content, *content.split("\n")))
        assert (
            odd or any(ord(c) < 32 and c != "\n" for c in "".join([content, *tags])) or _has_c1(content, tags)
        )


def _has_c1(content: str, tags: list[str]) -> bool:
    return any(0x7F <= ord(c) <= 0x9F for c in "".join([content, *tags]))
