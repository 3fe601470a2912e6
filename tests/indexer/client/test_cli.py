"""The command line with an indexer: history, status, inspect and doctor."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_cli.main import run
from tests.canaries import PASSPHRASE
from tests.chain.sockets import make_certificate
from tests.cli.conftest import Outcome
from tests.portability.conftest import Web

from .conftest import VERSIONS, Ground

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture
def cli(
    anchored: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """The command line of who has anchored, on a machine of its own; given its indexer's address."""
    for name in list(os.environ):
        if name.startswith("MYCELIUM_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", PASSPHRASE)
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(anchored.chain_file))
    monkeypatch.setenv("MYCELIUM_WALLET", str(anchored.wallet.path))

    def invoke(url: str | None, *arguments: str) -> Outcome:
        if url is not None:
            monkeypatch.setenv("MYCELIUM_INDEXER_URL", url)
        capsys.readouterr()
        code = run(arguments)
        return Outcome(code, *capsys.readouterr())

    return invoke


def test_a_history_by_the_environment_and_by_the_file(
    cli: Callable[..., Outcome], anchored: Ground, honest: str, tmp_path: Path
) -> None:
    anchored.fault("retention", methods=["getEvents"], ledgers=2)
    try:
        alone = cli(None, "memory", "history", "--json")
        assert alone.json["complete"] is False
        assert "no longer known to the RPC server\n" in alone.err
        (tmp_path / "mycelium.toml").write_text(f'[indexer]\nurl = "{honest}"\n')
        by_file = cli(None, "memory", "history", "--json")
        by_environment = cli(honest, "memory", "history", "--json")
    finally:
        anchored.clear_faults()
    for outcome in (by_file, by_environment):
        assert (outcome.code, outcome.err) == (0, "")
        assert (outcome.json["verified"], outcome.json["complete"], outcome.json["notes"]) == (True, True, [])
        assert [one["version"] for one in outcome.json["versions"]] == list(range(VERSIONS, 0, -1))


def test_falling_back_is_said(cli: Callable[..., Outcome]) -> None:
    outcome = cli(NOWHERE, "memory", "history", "--json")
    assert outcome.code == 0
    assert outcome.json["complete"] is True
    (note,) = outcome.json["notes"]
    assert outcome.err == f"warning: {note}\n"
    assert note == "the indexer at 127.0.0.1:1 was not used: the indexer at 127.0.0.1:1 cannot be reached"


def test_a_lie_ends_it_with_code_7(cli: Callable[..., Outcome], anchored: Ground, honest: str) -> None:
    def forge(_: str, document: Any) -> object:
        document["items"][2]["root"] = "ab" * 32
        return document

    outcome = cli(anchored.mirror(honest, forge), "memory", "history")
    assert outcome.code == 7
    assert outcome.out == ""
    error, hint = outcome.err.splitlines()
    assert re.match(r"error: the indexer at 127\.0\.0\.1:\d+ serves a false history: version 3 ", error)
    assert hint.startswith("hint: do not use this indexer")


def test_status_shows_how_the_indexer_stands(
    cli: Callable[..., Outcome], anchored: Ground, honest: str
) -> None:
    plain, found = cli(honest, "memory", "status"), cli(honest, "memory", "status", "--json")
    assert re.search(rf"^indexer   version {VERSIONS} as of ledger \d+, lag \d+ s$", plain.out, re.MULTILINE)
    assert set(found.json["indexer"]) == {"version", "as_of_ledger", "lag"}
    assert found.json["indexer"]["version"] == VERSIONS
    assert found.json["warnings"] == []
    behind = anchored.mirror(honest, lambda _, document: document | {"version": 2, "as_of_ledger": 5})
    assert "indexer   version 2 as of ledger 5, lag" in (said := cli(behind, "memory", "status").out)
    assert "s, behind the chain\n" in said
    for url, warning in (
        (NOWHERE, "the indexer at 127.0.0.1:1 cannot be reached; check `[indexer] url`"),
        (
            anchored.mirror(honest, lambda _, doc: doc | {"root": "ab" * 32}),
            "has another version 5 of this owner",
        ),
        (anchored.mirror(honest, lambda _, doc: doc | {"version": 9}), "has version 9 of this owner"),
    ):
        outcome = cli(url, "memory", "status", "--json")
        assert outcome.code == 0
        assert outcome.json["indexer"] is None
        assert any(warning in one for one in outcome.json["warnings"])
        assert "warning: the indexer at 127.0.0.1:" in outcome.err


def test_status_of_who_has_never_anchored(
    ground: Ground, cli: Callable[..., Outcome], honest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty chain, and an indexer that has an anchor all the same."""
    ground.contract()
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(ground.chain_file))
    outcome = cli(honest, "memory", "status", "--json")
    assert outcome.json["verdict"] == "NOT_ANCHORED"
    (warning,) = outcome.json["warnings"]
    assert "has version 5 of this owner, and the chain has none; ask another RPC server" in warning
    ground.follow()
    agreed = cli(ground.serve(), "memory", "status")
    assert "indexer   has no anchor of this owner\n" in agreed.out
    assert agreed.err == ""


def test_inspect_shows_it_too(
    ground: Ground, cli: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, certificate = make_certificate(tmp_path)
    web = Web(tls)
    with contextlib.closing(web.server):
        author = ground.memory("author")
        author.remember("likes tea")
        author.anchor(publish=web.publish)
        ground.follow()
        port = web.url("").rpartition(":")[2]
        (tmp_path / "mycelium.toml").write_text(
            f'[fetch]\nallow_networks = ["127.0.0.0/8"]\nports = [{port}]\nca_file = "{certificate}"\n'
        )
        monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(ground.chain_file))
        url = ground.serve()
        found = cli(url, "memory", "inspect", author.owner, "--json").json
        lying = ground.mirror(url, lambda _, document: document | {"root": "ab" * 32})
        doubted = cli(lying, "memory", "inspect", author.owner)
    assert (found["indexer"]["version"], found["warnings"]) == (1, [])
    assert doubted.code == 0
    assert "has another version 1 of this owner than the chain" in doubted.err
    assert "indexer " not in doubted.out


def test_doctor_compares(cli: Callable[..., Outcome], anchored: Ground, honest: str) -> None:
    def checks(url: str) -> dict[str, tuple[str, str]]:
        found = cli(url, "doctor", "--json").json["checks"]
        return {one["name"]: (one["state"], one["message"]) for one in found}

    state, message = checks(honest)["indexed"]
    assert state == "ok"
    assert re.fullmatch(rf"the indexer has version {VERSIONS} as of ledger \d+, lag \d+ s", message)
    forged = anchored.mirror(honest, lambda _, doc: doc | {"root": "ab" * 32})
    state, message = checks(forged)["indexed"]
    assert (state, "another version 5" in message) == ("fault", True)
    useless = anchored.mirror(honest, lambda path, doc: doc if path == "/healthz" else b"<html>")
    state, message = checks(useless)["indexed"]
    assert (state, "not JSON" in message) == ("warning", True)
    assert "indexed" not in checks(NOWHERE)
