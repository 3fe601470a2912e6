"""Telling formats apart: strictly, and saying why."""

from __future__ import annotations

import json

import pytest

from mycelium_cli.commands import transfer
from mycelium_sdk.errors import InputError
from mycelium_sdk.interchange import IMPORT_FORMATS, detect
from mycelium_sdk.interchange.detection import HEAD_BYTES
from tests.interchange.sources import OWNER

MESSAGE = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (f'{{"owner":"{OWNER}","records":[]}}', "x.txt", "blob"),
        ('{"content":"x"}', "", "jsonl"),
        ('\ufeff {"tags":[],"content":"x"}\n{"content":"y"}', "", "jsonl"),
        ('{"content":"' + "x" * HEAD_BYTES, "", "jsonl"),
        (json.dumps(MESSAGE), "", "chat"),
        (json.dumps([MESSAGE]), "", "chat"),
        (json.dumps([MESSAGE], indent=2), "", "chat"),
        (json.dumps({"messages": [MESSAGE]}, indent=2), "", "chat"),
        ('[{"mapping": {', "", "chat"),
        ('[\n {"uuid": "1", "chat_messages": [' + " " * HEAD_BYTES, "", "chat"),
        ("[]", "", "chat"),
        ("- a\n- b", "", "markdown"),
        ("# h\n\n1. a", "", "markdown"),
        ("- a\n- b", "x.TXT", "text"),
        ("plain", "x.md", "markdown"),
        ("plain\n- with a bullet", "", "text"),
        ("# no bullets below", "", "text"),
        ("[link](x) and so on", "", "text"),
        ("[1] a footnote", "", "text"),
        ("", "", "text"),
    ],
)
def test_formats_are_told_by_beginning_and_name(head: str, name: str, expected: str) -> None:
    found = detect(head.encode()[:HEAD_BYTES], name)
    assert found.format == expected
    assert str(found).startswith("read as ")
    assert ", since " in str(found)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("[1,2]", ""),
        ('{"text":"x"}', ""),
        ('[{"content":"x"}]', ""),
        ("{not json}", "x.txt"),
        ("plain text", "x.jsonl"),
        ('{"a":1}\n{"b":2}', "x.json"),
    ],
)
def test_what_looks_like_json_is_never_taken_for_text(head: str, name: str) -> None:
    with pytest.raises(InputError, match="the format cannot be told") as caught:
        detect(head.encode(), name)
    assert "--format" in (caught.value.hint or "")


def test_the_command_line_knows_the_formats() -> None:
    assert ("auto", *IMPORT_FORMATS) == transfer._IMPORT_FORMATS
