"""JSON lines: what is taken, what is refused and how that is said, and what an export line holds."""

from __future__ import annotations

import json

import pytest

from mycelium_sdk.errors import NonCanonical
from mycelium_sdk.interchange import Entry, json_line
from mycelium_sdk.records import Record
from mycelium_sdk.stored import StoredRecord
from tests.interchange.sources import NOW, read, refusal, texts


def test_a_line_is_a_memory_with_what_it_says() -> None:
    lines = (
        b'\xef\xbb\xbf{"content":"one"}\r\n\n \t\r\n'
        b'{"content":"two","tags":["b","a","b"],"session":"s","time":12.5,"sequence":7}\n'
        b'{"content":"three\\u0000\\ud83d\\ude00","tags":null,"session":null,"time":null}'
    )
    assert read("jsonl", lines, tags=("all",), session="mine") == [
        Entry(Record("one", ("all",)), "mine", NOW),
        Entry(Record("two", ("a", "all", "b")), "s", 12.5, 7),
        Entry(Record("three\0😀", ("all",)), "mine", None),
    ]


def test_a_line_with_copies_is_taken_as_it_is() -> None:
    line = b'{"content":"","tags":["b","","b"],"session":"s","time":null,"sequence":3,"copies":2}'
    assert read("jsonl", line) == [Entry(Record("", ("", "b", "b")), "s", None, 3, 2, exact=True)]
    assert read("jsonl", line, tags=("b", "c"))[0].record == Record("", ("", "b", "b", "c"))


SECRET = "secret-text"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1]", "it is no JSON object"),
        ('"secret-text"', "it is no JSON object"),
        ("{}", "its keys are not those of a memory"),
        ('{"text":"secret-text"}', "its keys are not those of a memory"),
        ('{"content":"a","secret-text":1}', "its keys are not those of a memory"),
        ('{"content":"secret-text"', "it is not valid JSON"),
        ('{"content":"a"} secret-text', "it is not valid JSON"),
        ('{"content":"a","content":"secret-text"}', "the same key twice"),
        ('{"content":""}', "the content is empty"),
        ('{"content":7}', "the content is of type int"),
        ('{"content":"\\ud800secret-text"}', "the content holds a lone surrogate"),
        ('{"content":"a","tags":"secret-text"}', "its tags are no list"),
        ('{"content":"a","tags":[""]}', "a tag is empty"),
        ('{"content":"a","tags":[["secret-text"]]}', "a tag is of type list"),
        ('{"content":"a","session":""}', "its session is no name"),
        ('{"content":"a","session":"\\udc00secret-text"}', "its session holds a lone surrogate"),
        ('{"content":"a","time":"secret-text"}', "the time is of type str"),
        ('{"content":"a","time":true}', "the time is of type bool"),
        ('{"content":"a","time":NaN}', "it is not valid JSON"),
        ('{"content":"a","time":1e400}', "the time is not within"),
        ('{"content":"a","time":' + "9" * 400 + "}", "the time is not within"),
        ('{"content":"a","time":' + "9" * 5000 + "}", "it is not valid JSON"),
        ('{"content":"a","sequence":-1}', "its sequence is no whole number"),
        ('{"content":"a","sequence":1.0}', "its sequence is no whole number"),
        ('{"content":"a","copies":0}', "its copies is no whole number"),
        ('{"content":"a","copies":true}', "its copies is no whole number"),
        ('{"content":7,"copies":1}', "its content is no text"),
        ('{"content":"a","tags":[7],"copies":1}', "a tag is no text"),
        ('{"content":"a","tags":["\\udfff"],"copies":1}', "it holds a lone surrogate"),
        ("[" * 100_000, "its JSON is nested too deeply"),
    ],
)
def test_what_is_no_memory_is_refused_by_its_line_and_without_its_text(line: str, reason: str) -> None:
    message = refusal("jsonl", b'{"content":"fine"}\n\n' + line.encode())
    assert message.startswith("line 3: ")
    assert reason in message
    assert SECRET not in message


def test_the_limit_is_the_memorys_own() -> None:
    assert texts("jsonl", b'{"content":"12345"}', max_record_bytes=5) == ["12345"]
    assert "the limit is 4" in refusal("jsonl", b'{"content":"12345"}', max_record_bytes=4)


def test_an_export_line_is_ascii_and_says_everything() -> None:
    fragment = '{"content":"t\\u00e9\\u0000\\n","tags":["a"]}'
    line = json_line(StoredRecord("9", fragment, 2, 9, "s é", 1.25))
    assert line.isascii()
    assert line.endswith(b"}\n")
    assert json.loads(line) == {
        "content": "té\0\n",
        "tags": ["a"],
        "session": "s é",
        "time": 1.25,
        "sequence": 9,
        "copies": 2,
    }
    with pytest.raises(NonCanonical):
        json_line(StoredRecord("9", '{"content":"t", "tags":[]}', 1, 9, None, None))
