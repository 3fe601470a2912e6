"""Conversations with questions and the turns that answer them: what recall is measured on.

The project's own small one, or the LoCoMo file (Maharana et al. 2024, CC BY-NC 4.0), which is not part of the
project: categories 1 to 4 (several hops, time, world knowledge, one hop), with malformed evidence ids mended.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mycelium_cli.demo import conversation as own

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

_evidence = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Memory:
    """One turn: `[date] speaker: text`, and the session that it is of."""

    content: str
    session: str


@dataclass(frozen=True)
class Question:
    """A question, its category, and the contents that answer it."""

    text: str
    category: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """Memories in the order in which they were written, and questions about them."""

    name: str
    memories: tuple[Memory, ...]
    questions: tuple[Question, ...]

    def shuffled(self, seed: int) -> Conversation:
        """The same memories in random order."""
        memories = list(self.memories)
        random.Random(seed).shuffle(memories)
        return replace(self, memories=tuple(memories))


def own_conversation() -> Conversation:
    """The sample data of the demo."""
    memories, contents = [], {}
    for turn in own.turns():
        content = f"[{turn.time[:10]}] {turn.speaker}: {turn.text}"
        contents[turn.text] = content
        memories.append(Memory(content, turn.session))
    questions = tuple(
        Question(question.text, "own", frozenset(contents[text] for text in question.expected))
        for question in own.questions()
    )
    return Conversation("own", tuple(memories), questions)


def locomo(path: str | os.PathLike[str]) -> list[Conversation]:
    """The ten conversations of the LoCoMo file."""
    return [_conversation(entry) for entry in json.loads(Path(path).read_text(encoding="utf-8"))]


def _conversation(entry: dict[str, Any]) -> Conversation:
    contents: dict[tuple[int, int], str] = {}
    memories = []
    for session, date, turn in _turns(entry["conversation"]):
        content = f"[{date}] {turn['speaker']}: {turn['text']}"
        ((first, second),) = _evidence.findall(turn["dia_id"])
        contents[int(first), int(second)] = content
        memories.append(Memory(content, session))
    questions = []
    for question in entry["qa"]:
        found = {(int(a), int(b)) for text in question["evidence"] for a, b in _evidence.findall(text)}
        evidence = frozenset(contents[place] for place in found if place in contents)
        if question["category"] <= 4 and evidence:
            questions.append(Question(question["question"], str(question["category"]), evidence))
    return Conversation(entry["sample_id"], tuple(memories), tuple(questions))


def _turns(conversation: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    number = 1
    while (session := f"session_{number}") in conversation or number < 50:
        for turn in conversation.get(session, ()):
            yield session, conversation[f"{session}_date_time"], turn
        number += 1
