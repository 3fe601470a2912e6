"""Transcripts: what a person types and sees, as readable text files that are run and compared.

A transcript is a file of blocks with blank lines between them.

    # A comment.
    @ skip-ledgers 100             something that is no command of ours happens: see `stage.ACTIONS`
    $ mycelium memory verify       a command line, on this machine
    there$ mycelium memory verify  on another one: its own home folder, the same wallet and chain
    IN_SYNC: ...                   what it writes on stdout,
    ! warning: ...                 on stderr (which is shown after stdout),
    => 7                           and its exit code, unless that is 0

A line that starts with `mycelium` and uses nothing of a shell runs in this process, every other one in a
shell with the real command on its path. What differs from run to run stands as a placeholder in angle
brackets; things of one kind are numbered as they appear, so that equal ones are seen to be equal.
"""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Outcome

__all__ = ["Placeholders", "Step", "parse", "replay"]

_LINE = re.compile(r"(?P<machine>[a-z]*)\$ (?P<command>.+)|@ (?P<action>.+)|# ?(?P<comment>.*)")
_SHELL = re.compile(r"[|<>;&$(){}`]")


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a transcript that is not output: a command on a machine ("" for this one), something that
    happens, or a comment."""

    line: str
    machine: str = ""
    command: str | None = None
    action: str | None = None

    @property
    def arguments(self) -> list[str] | None:
        """The command's arguments, where it needs no shell."""
        if self.command is None or _SHELL.search(self.command):
            return None
        program, *arguments = shlex.split(self.command)
        return arguments if program == "mycelium" else None


@dataclass
class Placeholders:
    """Replaces what differs from run to run. `fixed` maps texts, such as paths, to their placeholders."""

    fixed: dict[str, str]
    _numbered: dict[str, dict[str, int]] = field(default_factory=dict)

    def apply(self, text: str) -> str:
        """The text as a transcript shows it."""
        for found, placeholder in sorted(self.fixed.items(), key=lambda item: -len(item[0])):
            text = text.replace(found, f"<{placeholder}>")
        for pattern, kind in _PATTERNS:
            text = pattern.sub(functools.partial(self._replaced, kind), text)
        return text

    def _replaced(self, kind: str, match: re.Match[str]) -> str:
        whole, found = match.group(), match.group("it")
        if kind.endswith("#"):
            known = self._numbered.setdefault(kind, {})
            kind = f"{kind[:-1]} {known.setdefault(found, len(known) + 1)}"
        start, end = match.span("it")
        return f"{whole[: start - match.start()]}<{kind}>{whole[end - match.start() :]}"


_PATTERNS = [
    (re.compile(pattern), kind)
    for pattern, kind in [
        (r"\b(?P<it>(?!0{64})[0-9a-f]{64})\b", "hash#"),
        (r"\b(?P<it>[0-9a-f]{16})\.json", "hash's beginning"),
        (r"\b(?P<it>G[A-Z2-7]{55})\b", "account#"),
        (r"\b(?P<it>C[A-Z2-7]{55})\b", "contract#"),
        (r"(?P<it>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)", "time"),
        (r'"(?:timestamp|time)": (?P<it>\d+(?:\.\d+)?)', "time"),
        (r'"seconds": (?P<it>[\d.]+)', "seconds"),
        (r"(?m)^time +(?P<it>.+)$", "duration"),
        (r"(?P<it>[\d,]+\.\d+ XLM \([\d,]+ stroops\))", "amount"),
        (r'"fee_stroops": (?P<it>\d+)', "stroops"),
        (r'"?ledger"?:? (?P<it>\d+)', "number"),
        (r"(?P<it>[\d,]+) more ledgers", "number"),
        (r"can pay (?P<it>[\d,]+)", "number"),
        (r"(?m)^ok +versions +(?P<it>.+)$", "versions"),
        (r'"versions",\s+"state": "ok",\s+"message": (?P<it>".*")', "versions"),
        (r"score (?P<it>[\d.]+)", "score"),
        (r'"score": (?P<it>[\d.]+)', "score"),
    ]
]


def parse(text: str) -> Iterator[Step]:
    """The steps of a transcript; what they are expected to write is left out."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None:
            yield Step(line, found["machine"] or "", found["command"], found["action"])


def replay(
    text: str, run: Callable[[Step], Outcome], act: Callable[[str], None], placeholders: Placeholders
) -> str:
    """Run a transcript and give it as it is really. It is right if that is the same text."""
    blocks: list[str] = []
    comments: list[str] = []
    for step in parse(text):
        if step.action is not None:
            act(step.action)
        if step.command is None:
            comments.append(step.line)
            continue
        outcome = run(step)
        lines = [*comments, step.line]
        lines += placeholders.apply(outcome.out).splitlines()
        lines += [f"! {line}".rstrip() for line in placeholders.apply(outcome.err).splitlines()]
        if outcome.code:
            lines.append(f"=> {outcome.code}")
        blocks.append("\n".join(lines))
        comments = []
    if comments:
        blocks.append("\n".join(comments))
    return "\n\n".join(blocks) + "\n"
