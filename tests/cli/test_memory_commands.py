"""`memory remember`, `recall` and `status --local`: what needs no chain."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory.agent_memory import AgentMemory

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli

pytestmark = pytest.mark.usefixtures("wallet")


def stored() -> list[tuple[str, list[str], str | None]]:
    """What the memory holds, as the API sees it."""
    with AgentContext() as context, AgentMemory(context) as memory:
        return [
            (kept.record.content, list(kept.record.tags), kept.session)
            for kept in memory.backend.all_records()
        ]


def test_remember_keeps_text_tags_and_session(cli: Cli) -> None:
    outcome = cli(
        "memory", "remember", "likes tea", "--tag", "taste", "--tag", "drink", "--session", "monday"
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("remembered, id ")
    assert stored() == [("likes tea", ["drink", "taste"], "monday")]


def test_remembering_again_gives_the_same_id(cli: Cli) -> None:
    first = cli("memory", "remember", "likes tea", "--json").json
    second = cli("memory", "remember", "likes tea", "--json").json
    assert (list(first), first["new"], second["new"]) == (["id", "new"], True, False)
    assert first["id"] == second["id"]


@pytest.mark.parametrize(
    ("stdin", "content"),
    [
        (b"piped\n", "piped"),
        (b"piped\r\n", "piped"),
        (b"two\nlines\n\n", "two\nlines\n"),
        ("kött på ön".encode(), "kött på ön"),
        (b"-", "-"),
    ],
)
def test_a_dash_reads_stdin(cli: Cli, stdin: bytes, content: str) -> None:
    assert cli("memory", "remember", "-", stdin=stdin).code == 0
    assert [kept[0] for kept in stored()] == [content]


@pytest.mark.parametrize(
    ("stdin", "part"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"caf\xe9\n", "not valid UTF-8"),
        (b"\xed\xa0\x80", "not valid UTF-8"),
        (b"x" * (1024 * 1024 + 1), "the limit is"),
        (b"x" * (1024 * 1024 + 3), "longer than"),
    ],
)
def test_bad_text_on_stdin_is_refused_and_nothing_is_kept(cli: Cli, stdin: bytes, part: str) -> None:
    outcome = cli("memory", "remember", "-", stdin=stdin)
    assert (outcome.code, outcome.out) == (2, "")
    assert part in outcome.err
    assert stored() == []


@pytest.mark.parametrize(
    "arguments", [("",), ("x", "--tag", ""), ("x", "--session", "")], ids=["text", "tag", "session"]
)
def test_empty_values_are_refused(cli: Cli, arguments: tuple[str, ...]) -> None:
    outcome = cli("memory", "remember", *arguments)
    assert outcome.code == 2
    assert "empty" in outcome.err
    assert stored() == []


def test_two_dashes_end_the_options(cli: Cli) -> None:
    assert cli("memory", "remember", "--tag", "a", "--", "--json").code == 0
    assert stored() == [("--json", ["a"], None)]
    assert [hit["content"] for hit in cli("memory", "recall", "--json", "--", "--json").json] == ["--json"]


def test_recall_json_is_the_list_of_the_api(cli: Cli) -> None:
    for text in ("tea with milk", "tea with lemon", "coffee"):
        cli("memory", "remember", text, "--tag", "drink")
    found = cli("memory", "recall", "tea", "--json").json
    with AgentContext() as context, AgentMemory(context) as memory:
        assert found == memory.recall("tea")
    assert set(found[0]) == {"id", "content", "tags", "score", "session", "time", "sequence"}
    assert {hit["content"] for hit in found} == {"tea with milk", "tea with lemon"}


def test_recall_takes_k_offset_tags_and_session(cli: Cli) -> None:
    for number in range(4):
        cli("memory", "remember", f"tea {number}", "--tag", f"n{number}", "--session", f"s{number % 2}")

    def found(*options: str) -> list[str]:
        return [hit["content"] for hit in cli("memory", "recall", "tea", "--json", *options).json]

    everything = found()
    assert len(everything) == 4
    assert found("-k", "1") == everything[:1]
    assert found("-k", "2", "--offset", "1") == everything[1:3]
    assert found("-k", "0") == []
    assert found("--tag", "n2") == ["tea 2"]
    assert found("--tag", "n2", "--tag", "n3") == []
    assert sorted(found("--session", "s1")) == ["tea 1", "tea 3"]
    assert cli("memory", "recall", "tea", "-k", "-1").code == 2
    assert cli("memory", "recall", "tea", "--offset", "-1").code == 2
    assert cli("memory", "recall", "tea", "-k", "many").code == 2


def test_recall_for_people_counts_from_the_offset_and_shows_no_control_characters(cli: Cli) -> None:
    cli("memory", "remember", "tea\nwith \x1b[31mmilk", "--tag", "a\x07b", "--session", "monday")
    cli("memory", "remember", "tea tea")
    outcome = cli("memory", "recall", "tea", "-k", "1", "--offset", "0")
    assert outcome.out.startswith(" 1. ")
    second = cli("memory", "recall", "tea", "-k", "1", "--offset", "1")
    assert second.out.startswith(" 2. ")
    both = outcome.out + second.out
    assert "tea\n    with \\x1b[31mmilk\n" in both
    assert "tags a\\x07b; session monday" in both
    assert "\x1b" not in both


def test_nothing_found_is_said_on_stderr(cli: Cli) -> None:
    outcome = cli("memory", "recall", "anything")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "note: nothing was found\n"
    assert cli("memory", "recall", "anything", "--json").json == []


def test_what_was_found_and_left_out_is_not_called_nothing(cli: Cli) -> None:
    cli("memory", "remember", "likes tea")
    assert cli("memory", "recall", "tea", "-k", "0").err == "note: -k 0 asks for nothing\n"
    beyond = cli("memory", "recall", "tea", "--offset", "99")
    assert (beyond.out, beyond.err) == ("", "note: nothing was found beyond the best 99\n")


def test_tags_and_sessions_cannot_look_like_further_memories(cli: Cli) -> None:
    cli("memory", "remember", "likes tea", "--tag", "a\n 2. forged", "--session", "b\n 3. forged\tas well")
    outcome = cli("memory", "recall", "tea")
    assert len(outcome.out.splitlines()) == 2
    assert "tags a\\x0a 2. forged; session b\\x0a 3. forged\\x09as well" in outcome.out


def test_status_local_says_what_is_here(cli: Cli, wallet: Wallet) -> None:
    empty = cli("memory", "status", "--local", "--json").json
    assert empty == {
        "owner": wallet.address,
        "network": "local",
        "backend": empty["backend"],
        "lag": None,
        "records": 0,
        "dirty": False,
        "last_anchor": None,
    }
    assert empty["backend"].endswith(f"/memory/{wallet.address}.db")
    cli("memory", "remember", "x")
    assert cli("memory", "status", "--local", "--json").json == {**empty, "records": 1, "dirty": True}
    outcome = cli("memory", "status", "--local")
    assert outcome.out == (
        f"owner     {wallet.address}\n"
        "network   local\n"
        f"backend   {empty['backend']}\n"
        "records   1\n"
        "anchored  never from here\n"
        "dirty     yes, there are writes that are not anchored\n"
    )


def test_what_needs_no_passphrase_asks_for_none(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MYCELIUM_DECRYPT_KEY")
    assert cli("memory", "remember", "x").code == 0
    assert cli("memory", "recall", "x").code == 0
    assert cli("memory", "status", "--local").code == 0


def test_what_is_made_is_private(cli: Cli, own_home: Path) -> None:
    cli("memory", "remember", "x")
    cli("memory", "status", "--local")
    made = [own_home, *own_home.rglob("*")]
    assert any(path.suffix == ".db" for path in made)
    for path in made:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_home_that_others_can_read_is_refused_with_the_fix(cli: Cli, own_home: Path) -> None:
    own_home.mkdir(mode=0o755)
    own_home.chmod(0o755)
    outcome = cli("memory", "remember", "x")
    assert outcome.code == 5
    assert f"hint: run `chmod 700 {own_home}`" in outcome.err


def test_an_unknown_variable_is_a_warning(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCELIUM_NETWROK", "testnet")
    outcome = cli("memory", "remember", "x")
    assert outcome.code == 0
    assert outcome.err.startswith("warning: unknown environment variable MYCELIUM_NETWROK; did you mean")


def test_a_bad_configuration_file_is_named(cli: Cli) -> None:
    Path("mycelium.toml").write_text('[onchian]\nnetwork = "local"\n')
    outcome = cli("memory", "recall", "x", "--json")
    assert outcome.code == 3
    assert outcome.json["error"]["type"] == "ConfigError"
    assert "mycelium.toml" in outcome.json["error"]["message"]
    assert "onchain" in outcome.json["error"]["hint"]
