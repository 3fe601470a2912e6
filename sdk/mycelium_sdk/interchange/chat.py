"""Chats with roles, in the shapes that chat programs export: one memory for each message with text.

The role is kept as a tag: in the text it would be a word of every message, which finds nothing, while a tag
lets a person ask for one side only. A conversation is a session, so that recall knows what belongs together.
"""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelium_sdk.interchange.entries import refused, timed
from mycelium_sdk.interchange.lines import decoded, json_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from mycelium_sdk.interchange.entries import Entry, Intake

__all__ = ["MAX_CHAT_BYTES", "read_chat"]

MAX_CHAT_BYTES = 1 << 30
"""A chat is one JSON document, which is read whole; a larger one is refused."""

_ROLES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}
_ROLE_KEYS = ("role", "sender", "author")
_TIME_KEYS = ("timestamp", "time", "create_time", "created_at")
_NAME_KEYS = ("title", "name")
_ID_KEYS = ("conversation_id", "id", "uuid")
_MILLISECONDS = 1e11
"""Numbers above this are milliseconds: as seconds they would be beyond the year 5000."""
_LARGEST = 1e18
"""Numbers beyond this are no time in either, and may be too large for a division."""


class _Conversation(NamedTuple):
    """`key` names it in its file where its title does not."""

    title: str | None
    key: str | None
    messages: Iterable[Any]


def read_chat(source: BinaryIO, intake: Intake) -> Iterator[Entry]:
    """One memory for each message that has text; the others are counted in `intake.skipped`.

    Read are a list of `{role, content, timestamp?}`, `{"messages": [...]}`, ChatGPT's `conversations.json`
    (the branch that was shown last), Claude's `chat_messages`, and lists or lines of any of those. Raises
    `InputError`, naming conversation and message by their numbers.
    """
    data = source.read(MAX_CHAT_BYTES + 1)
    if len(data) > MAX_CHAT_BYTES:
        raise refused("the chat", f"it is larger than {MAX_CHAT_BYTES} bytes", "split it into several files")
    sessions: set[str] = set()
    for number, conversation in enumerate(
        _conversations(_documents(decoded(data, "the chat", first=True))), 1
    ):
        session = _session(conversation, number, sessions)
        for place, message in enumerate(conversation.messages, 1):
            entry = _entry(message, session, f"conversation {number}, message {place}", intake)
            if entry is None:
                intake.skipped += 1
            else:
                yield entry


def _documents(text: str) -> list[Any]:
    """The one document, or one for each line."""
    first, _, rest = text.lstrip().partition("\n")
    if not rest.strip() or not _is_json(first):
        return [json_value(text, "the chat")]
    lines = enumerate(text.split("\n"), 1)
    return [json_value(line, f"line {number}") for number, line in lines if line.strip()]


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _conversations(documents: list[Any]) -> Iterator[_Conversation]:
    if all(map(_is_message, documents)):
        yield _Conversation(None, None, documents)
        return
    for document in documents:
        if isinstance(document, list):
            yield from _conversations(document) if document else ()
        else:
            yield from _conversation(document)


def _conversation(document: Any) -> Iterator[_Conversation]:
    if isinstance(document, dict):
        title, key = _first_text(document, _NAME_KEYS), _first_text(document, _ID_KEYS)
        if isinstance(document.get("mapping"), dict):
            yield _Conversation(title, key, _shown_branch(document))
            return
        for name in ("chat_messages", "messages"):
            if isinstance(document.get(name), list):
                yield _Conversation(title, key, document[name])
                return
        if isinstance(document.get("conversations"), list):
            yield from _conversations(document["conversations"])
            return
    raise refused(
        "the chat",
        "it has none of the known shapes",
        'known are [{"role", "content"}], {"messages": [...]}, and the exports of ChatGPT and Claude',
    )


def _shown_branch(document: dict[str, Any]) -> list[Any]:
    """The messages from the first to the one shown last; answers that were made anew are other branches."""
    nodes = document["mapping"]
    name = document.get("current_node")
    if not isinstance(name, str) or name not in nodes:
        leaves = [key for key, node in nodes.items() if isinstance(node, dict) and not node.get("children")]
        name = leaves[-1] if leaves else None
    branch: list[Any] = []
    seen: set[str] = set()
    while isinstance(name, str) and name in nodes and name not in seen:
        seen.add(name)
        node = nodes[name]
        if not isinstance(node, dict):
            break
        if node.get("message") is not None:
            branch.append(node["message"])
        name = node.get("parent")
    return branch[::-1]


def _entry(message: Any, session: str | None, place: str, intake: Intake) -> Entry | None:
    if not _is_message(message):
        raise refused(place, "it has no role", 'a message looks like {"role": "user", "content": "..."}')
    metadata = message.get("metadata")
    if isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation"):
        return None
    text = _text(message).strip()
    if not text:
        return None
    role = _role(message) or ""
    return intake.entry(
        place, text, [_ROLES.get(role, role)], session=session, time=_time(message, place, intake)
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and _role(value) is not None


def _role(message: dict[str, Any]) -> str | None:
    for key in _ROLE_KEYS:
        value = message.get(key)
        if isinstance(value, dict):
            value = value.get("role")
        if isinstance(value, str) and value:
            return value.lower()
    return None


def _text(message: dict[str, Any]) -> str:
    """A message's text: given as text, in parts, or in blocks of which only some are text."""
    for key in ("text", "content"):
        value = message.get(key)
        if isinstance(value, dict):
            value = value.get("parts") or value.get("text")
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list):
            parts = [part.get("text") if isinstance(part, dict) else part for part in value]
            return "\n".join(part for part in parts if isinstance(part, str) and part.strip())
    return ""


def _time(message: dict[str, Any], place: str, intake: Intake) -> float | None:
    for key in _TIME_KEYS:
        value = message.get(key)
        if isinstance(value, str):
            return _calendar_time(value, place)
        if value is not None:
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return timed(value / 1000 if number and _MILLISECONDS < abs(value) < _LARGEST else value, place)
    return intake.now


def _calendar_time(text: str, place: str) -> float | None:
    """An ISO 8601 time; one without a zone is UTC."""
    try:
        moment = datetime.datetime.fromisoformat(text)
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        seconds = zoned.timestamp()
    except (ValueError, OverflowError):  # not chained: the cause holds the text
        raise refused(place, "its time is no time", "give Unix seconds or ISO 8601") from None
    return timed(seconds, place)


def _session(conversation: _Conversation, number: int, taken: set[str]) -> str | None:
    """The title, with something to tell it apart if an earlier conversation has the same; else the id."""
    name = conversation.title or conversation.key
    if name is None:
        return None
    if name in taken:
        name = f"{name} ({conversation.key or number})"
    taken.add(name)
    return name


def _first_text(document: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = document.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None
