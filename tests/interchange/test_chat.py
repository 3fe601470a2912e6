"""Chats in the shapes that chat programs export."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from mycelium_sdk.interchange import Intake, chat, read_entries
from tests.interchange.sources import NOW, OWNER, read, refusal, texts


def chatted(document: Any) -> list[tuple[str, tuple[str, ...], str | None, float | None]]:
    """(content, tags, session, time) of each message."""
    return [
        (entry.record.content, entry.record.tags, entry.session, entry.time)
        for entry in read("chat", json.dumps(document).encode())
    ]


def test_a_list_of_messages() -> None:
    document = [
        {"role": "user", "content": " hi "},
        {"role": "Assistant", "content": [{"type": "text", "text": "one"}, {"type": "image"}, "two"],
         "timestamp": "2026-03-02T09:14:00Z"},
        {"role": "ai", "content": "naive", "timestamp": "2026-03-02T09:14:00"},
        {"role": "model", "content": "ms", "timestamp": 1_772_442_840_123},
        {"role": "tool", "content": "s", "timestamp": 1_772_442_840},
    ]  # fmt: skip
    assert chatted(document) == [
        ("hi", ("user",), None, NOW),
        ("one\ntwo", ("assistant",), None, 1_772_442_840.0),
        ("naive", ("assistant",), None, 1_772_442_840.0),
        ("ms", ("assistant",), None, 1_772_442_840.123),
        ("s", ("tool",), None, 1_772_442_840.0),
    ]


def test_an_object_with_messages_is_a_session() -> None:
    messages = [{"role": "user", "content": "x"}]
    assert chatted({"title": "Trip", "id": "7", "messages": messages})[0][2] == "Trip"
    assert chatted({"id": "7", "messages": messages})[0][2] == "7"
    assert chatted({"messages": messages})[0][2] is None
    same = [{"title": "A", "id": str(number), "messages": messages} for number in range(3)]
    assert [found[2] for found in chatted(same)] == ["A", "A (1)", "A (2)"]
    assert chatted({"conversations": [{"title": "A", "messages": messages}]})[0][2] == "A"


def node(name: str, parent: str | None, role: str = "user", **message: Any) -> dict[str, Any]:
    """A node of ChatGPT's tree."""
    content = {"content_type": "text", "parts": [name]}
    return {
        "id": name,
        "parent": parent,
        "children": [],
        "message": {"author": {"role": role}, "content": content, "create_time": 10.5, **message},
    }


def test_chatgpts_tree_gives_the_branch_that_was_shown() -> None:
    mapping = {
        "root": {"id": "root", "parent": None, "children": ["hidden"], "message": None},
        "hidden": node("hidden", "root", "system", metadata={"is_visually_hidden_from_conversation": True}),
        "question": node("question", "hidden"),
        "first try": node("first try", "question", "assistant"),
        "second try": node("second try", "question", "assistant", create_time=None),
        "picture": node(
            "picture", "second try",
            content={"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "see this"]},
        ),
        "code": node("code", "picture", "tool", content={"content_type": "code", "text": "print()"}),
        "nothing": node("nothing", "code", "assistant", content={"content_type": "text", "parts": [""]}),
    }  # fmt: skip
    conversation = {"title": "T", "conversation_id": "c", "mapping": mapping, "current_node": "nothing"}
    assert chatted([conversation]) == [
        ("question", ("user",), "T", 10.5),
        ("second try", ("assistant",), "T", NOW),
        ("see this", ("user",), "T", 10.5),
        ("print()", ("tool",), "T", 10.5),
    ]
    without = {"mapping": {"a": node("a", "b"), "b": node("b", "a")}, "current_node": "a"}
    assert [found[0] for found in chatted(without)] == ["b", "a"], "a circle ends"
    newest = {"mapping": {"a": node("a", None) | {"children": ["b"]}, "b": node("b", "a")}}
    assert [found[0] for found in chatted(newest)] == ["a", "b"]


@pytest.mark.parametrize("current", ["[]", "{}", "7", "null", '"none"'])
def test_chatgpts_tree_without_a_node_shown_last(current: str) -> None:
    message = '{"author":{"role":"user"},"content":{"parts":["tea"]}}'
    data = f'[{{"mapping":{{"n":{{"message":{message}}}}},"current_node":{current}}}]'
    assert texts("chat", data.encode()) == ["tea"]


def test_claudes_export() -> None:
    document = [
        {
            "uuid": "u-1",
            "name": "",
            "created_at": "2026-03-01T00:00:00.000000Z",
            "chat_messages": [
                {
                    "uuid": "m",
                    "sender": "human",
                    "text": "hello",
                    "created_at": "2026-03-02T09:14:00.500000Z",
                },
                {"sender": "assistant", "text": "", "content": [{"type": "text", "text": "blocks"}]},
            ],
        }
    ]
    assert chatted(document) == [
        ("hello", ("user",), "u-1", 1_772_442_840.5),
        ("blocks", ("assistant",), "u-1", NOW),
    ]


def test_json_lines_of_messages_and_of_conversations() -> None:
    messages = b'{"role":"user","content":"a"}\n\n{"role":"user","content":"b"}\n'
    assert [entry.record.content for entry in read("chat", messages)] == ["a", "b"]
    conversations = b'{"title":"A","messages":[{"role":"user","content":"a"}]}\n{"title":"B","messages":[]}\n'
    assert [(entry.record.content, entry.session) for entry in read("chat", conversations)] == [("a", "A")]


def test_messages_without_text_are_counted() -> None:
    document = [{"role": "user", "content": text} for text in ("a", "", None, " ")]
    intake = Intake(OWNER, NOW)
    assert len(list(read_entries(io.BytesIO(json.dumps(document).encode()), "chat", intake))) == 1
    assert intake.skipped == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"secret":1}', "the chat: it has none of the known shapes"),
        (b"[7]", "the chat: it has none of the known shapes"),
        (b'{"messages":[{"content":"secret"}]}', "conversation 1, message 1: it has no role"),
        (b'[{"role":"user","content":"a"},{"content":"secret"}]', "it has none of the known shapes"),
        (b'[{"role":"user","content":"\\ud800secret"}]', "message 1: the content holds a lone surrogate"),
        (b'[{"role":"user","content":"a","time":"secret"}]', "message 1: its time is no time"),
        (b'[{"role":"user","content":"a","time":[]}]', "message 1: the time is of type list"),
        (b'[{"role":"user","content":"a","time":NaN}]', "it is not valid JSON"),
        (b'[{"role":"user","content":"a","time":1' + b"0" * 400 + b"}]", "the time is not within the years"),
        (b'[{"role":"user","content":"secret"', "the chat: it is not valid JSON"),
        (b'{"role":"user","content":"a"}\n{secret', "line 2: it is not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"messages":' * 50_000, "nested too deeply"),
        (b"caf\xe9", "it is not valid UTF-8"),
        (b"", "it is not valid JSON"),
    ],
)
def test_what_is_no_chat_is_refused_without_its_text(data: bytes, reason: str) -> None:
    message = refusal("chat", data)
    assert reason in message
    assert "secret" not in message


def test_a_chat_too_large_to_be_read_whole_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "MAX_CHAT_BYTES", 10)
    assert "larger than 10 bytes" in refusal("chat", b"[" + b" " * 10 + b"]")
