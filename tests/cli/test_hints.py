"""Every command line that a message names is one that the command line understands."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from mycelium_cli.root import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "sdk", ROOT / "cli", ROOT / "localnet" / "python"]
NAMED = re.compile(r"`(mycelium [^`]+)`")
PLACEHOLDER = "X"


def texts(path: Path) -> Iterator[str]:
    """The string constants of a module, with a placeholder for what a formatted one puts in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named() -> dict[str, str]:
    """Every command line that is named, with a place where it is."""
    return {
        line: str(path.relative_to(ROOT))
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
        for text in texts(path)
        for line in NAMED.findall(re.sub(r"\s+", " ", text))
    }


LINES = named()


def problem(line: str) -> str | None:
    """What is wrong with a command line, None if nothing is."""
    words = shlex.split(line.removesuffix("..."))[1:]
    command: click.Command = cli
    context = click.Context(cli, info_name="mycelium")
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return f"there is no command {words[0]!r}"
        context = click.Context(found, parent=context, info_name=words.pop(0))
        command = found
    known = {"--help", "-h"} | {
        name
        for parameter in command.get_params(context)
        for name in [*parameter.opts, *parameter.secondary_opts]
    }
    unknown = [word for word in words if word.startswith("-") and word not in {*known, "-", "--"}]
    return f"{command.name} has no {unknown[0]}" if unknown else None


def test_there_are_some() -> None:
    assert len(LINES) > 15
    assert "mycelium memory rehydrate --on-conflict replace" in LINES


@pytest.mark.parametrize("line", sorted(LINES))
def test_it_is_understood(line: str) -> None:
    assert problem(line) is None, LINES[line]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("mycelium memroy anchor", "no command"),
        ("mycelium memory restore", "no command"),
        ("mycelium memory anchor --on-conflict merge", "has no --on-conflict"),
    ],
)
def test_what_is_not_understood_is_noticed(line: str, part: str) -> None:
    assert part in str(problem(line))
