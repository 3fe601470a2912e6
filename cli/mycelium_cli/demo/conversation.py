"""The sample data: a conversation of a project's planning, and questions about it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

__all__ = ["Question", "Turn", "questions", "turns"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said. `time` is ISO 8601, UTC."""

    session: str
    time: str
    speaker: str
    text: str

    def as_item(self) -> dict[str, object]:
        """The turn as `remember_many` takes it: the text with day and speaker, the speaker as a tag."""
        return {
            "content": f"[{self.time[:10]}] {self.speaker}: {self.text}",
            "tags": [self.speaker.lower()],
            "session": self.session,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the texts of the turns of which one answers it."""

    text: str
    expected: tuple[str, ...]


def turns() -> list[Turn]:
    """The conversation, in order."""
    return [Turn(**line) for line in _lines("conversation.jsonl")]


def questions() -> list[Question]:
    """Questions that a recall over the whole conversation should answer."""
    return [Question(line["question"], tuple(line["expected"])) for line in _lines("questions.jsonl")]


def _lines(name: str) -> list[dict[str, Any]]:
    text = resources.files("mycelium_cli.demo").joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
