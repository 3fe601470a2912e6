"""`memory forget`: what it forgets, when it asks, and what it says is still published."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from mycelium_cli import confirm
from mycelium_cli.commands import forgetting
from mycelium_sdk.memory.published import PublishedVersion

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli

pytestmark = pytest.mark.usefixtures("wallet")


def remembered(cli: Cli, text: str, *tags: str) -> str:
    options = [part for tag in tags for part in ("--tag", tag)]
    return str(cli("memory", "remember", text, *options, "--json").json["id"])


def texts(cli: Cli) -> list[str]:
    return [json.loads(line)["content"] for line in cli("memory", "export").out.splitlines()]


def test_one_is_forgotten_by_its_id(cli: Cli) -> None:
    first, _ = remembered(cli, "one"), remembered(cli, "two")
    outcome = cli("memory", "forget", first)
    assert (outcome.code, outcome.out, outcome.err) == (0, "forgot 1 memory\n", "")
    assert texts(cli) == ["two"]


@pytest.mark.parametrize("arguments", [("99",), ("no-id",), ("--tag", "x", "--yes"), ("--tag", "", "--yes")])
def test_an_id_or_a_tag_that_nothing_has_is_an_error(cli: Cli, arguments: tuple[str, ...]) -> None:
    remembered(cli, "one", "t")
    outcome = cli("memory", "forget", *arguments, "--json")
    assert outcome.code == 2
    assert "nothing was forgotten" in outcome.json["error"]["message"]
    assert texts(cli) == ["one"]


@pytest.mark.parametrize("arguments", [(), ("1", "--tag", "t", "--yes")])
def test_it_takes_an_id_or_a_tag(cli: Cli, arguments: tuple[str, ...]) -> None:
    remembered(cli, "one", "t")
    outcome = cli("memory", "forget", *arguments)
    assert outcome.code == 2
    assert "either an ID or --tag" in outcome.err
    assert texts(cli) == ["one"]


def test_without_a_terminal_a_tag_needs_yes(cli: Cli) -> None:
    remembered(cli, "one", "t"), remembered(cli, "two", "t", "u"), remembered(cli, "three")
    outcome = cli("memory", "forget", "--tag", "t")
    assert (outcome.code, outcome.out) == (2, "")
    assert "hint: say --yes" in outcome.err
    assert len(texts(cli)) == 3
    assert cli("memory", "forget", "--tag", "t", "--yes").out == "forgot 2 memories\n"
    assert texts(cli) == ["three"]


@pytest.mark.parametrize(("answer", "left"), [("y", 1), ("YES", 1), ("n", 3), ("", 3), ("yep", 3)])
def test_at_a_terminal_several_are_asked_about(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    remembered(cli, "one", "t"), remembered(cli, "two", "t"), remembered(cli, "three", "u")
    monkeypatch.setattr(forgetting, "at_a_terminal", lambda: True)
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    outcome = cli("memory", "forget", "--tag", "t", stdin=f"{answer}\n".encode())
    assert outcome.code == 0
    assert outcome.err.startswith("Forget 2 memories? [y/N] ")
    assert outcome.err.endswith("note: nothing was forgotten\n") is (left == 3)
    assert len(texts(cli)) == left
    if left == 3:
        assert cli("memory", "forget", "--tag", "u", stdin=b"").out == "forgot 1 memory\n", "one is not many"


def test_a_pipe_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert not confirm.at_a_terminal()


def test_it_says_what_still_holds_the_text_and_what_is_anchored(cli: Cli) -> None:
    doomed = remembered(cli, "doomed")
    uri = cli("memory", "anchor", "--json").json["uri"]
    remembered(cli, "other")
    second = cli("memory", "anchor", "--json").json
    outcome = cli("memory", "forget", doomed)
    assert outcome.out == (
        f"forgot 1 memory\nstill published:\n  version 2  {second['uri']}\n  version 1  {uri}\n"
    )
    assert outcome.err.startswith(
        "note: version 2 on the chain still commits to it; `mycelium memory anchor`"
    )
    assert cli("memory", "verify").code == 7
    assert cli("memory", "anchor").code == 0
    again = cli("memory", "forget", remembered(cli, "never anchored"), "--json")
    assert again.json == {"forgotten": 1, "secure": False, "published": []}
    assert again.err == ""
    third = remembered(cli, "not anchored either")
    remembered(cli, "so that there is something to anchor")
    assert cli("memory", "forget", third).err == "", "the anchor never committed to it"


def test_what_was_purged_is_not_called_published(cli: Cli, tmp_path: Path) -> None:
    shared, elsewhere = tmp_path / "shared", tmp_path / "disk"
    shared.mkdir()
    elsewhere.mkdir()
    doomed = remembered(cli, "doomed")
    first = cli("memory", "anchor", "--publish", str(shared), "--json").json["uri"]
    remembered(cli, "other")
    second = cli("memory", "anchor", "--publish", str(elsewhere), "--json").json["uri"]
    remembered(cli, "a third")
    third = cli("memory", "anchor", "--publish", str(shared), "--json").json["uri"]
    assert "removed version 1" in cli("memory", "purge", "1", "--yes").out
    elsewhere.rename(tmp_path / "not mounted")
    outcome = cli("memory", "forget", doomed)
    assert outcome.out == (
        f"forgot 1 memory\nstill published:\n  version 3  {third}\n"
        f"  version 2  {second} (cannot be looked into from here; it may hold the text)\n"
        f"no longer there (unless the address is another machine's):\n  version 1  {first}\n"
    )


def test_the_published_versions_as_json(cli: Cli) -> None:
    doomed = remembered(cli, "doomed")
    anchor = cli("memory", "anchor", "--json").json
    (found,) = cli("memory", "forget", doomed, "--json").json["published"]
    assert (found["version"], found["uri"], found["root"], found["seen"], found["missing"]) == (
        1,
        anchor["uri"],
        anchor["root"],
        True,
        False,
    )


def test_secure_leaves_no_copy_in_the_memorys_files(cli: Cli, own_home: Path) -> None:
    doomed = remembered(cli, "xyzzy-plugh-text", "t")
    cli("memory", "recall", "xyzzy")
    assert cli("memory", "forget", doomed, "--secure", "--json").json["secure"] is True
    files = [path for path in (own_home / "memory").iterdir() if path.is_file()]
    assert files
    for path in files:
        assert b"plugh" not in path.read_bytes(), path


def test_networks_and_contracts_are_named_where_there_are_several() -> None:
    def one(network: str, contract: str) -> PublishedVersion:
        return PublishedVersion(1, "file:///x", bytes(32), network, seen=True, contract=contract)

    lines = forgetting._published_lines
    assert lines([one("here", "C1")], "here")[1:] == ["  version 1  file:///x"]
    assert lines([one("here", "C1"), one("there", "C2")], "here")[1:] == [
        "  version 1 on here  file:///x",
        "  version 1 on there  file:///x",
    ]
    assert lines([one("here", "C1"), one("here", "C2")], "here")[1:] == [
        "  version 1 (contract C1)  file:///x",
        "  version 1 (contract C2)  file:///x",
    ]
