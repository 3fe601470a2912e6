"""Stateless agents: each run in a home of its own that knows nothing, one database and one chain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.backends.postgres import PostgresBackend
from mycelium_sdk.memory import AnchoringPolicy
from mycelium_sdk.verdicts import Verdict
from mycelium_sdk.wallet import Wallet
from tests.memory.conftest import PASSPHRASE, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mycelium_sdk.memory import AgentMemory
    from tests.external.postgres.server import Server


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, Wallet.create(tmp_path / "private" / "wallet.json", PASSPHRASE))
    yield made
    made.close()


@pytest.fixture
def agent(world: World, server: Server, schema: str) -> Callable[..., AgentMemory]:
    """An agent's memory on the machine of that name."""

    def run(name: str, **policy: Any) -> AgentMemory:
        return world.machine(
            name,
            backend="postgres",
            backend_kwargs={"dsn": server.dsn, "schema": schema},
            policy=AnchoringPolicy(**policy),
        )

    return run


def test_a_stateless_agent_counts_writes_since_the_last_anchor_of_any(
    agent: Callable[..., AgentMemory],
) -> None:
    policy = {"heartbeat_seconds": 0, "min_writes": 3}
    first = agent("one", **policy)
    for number in range(3):
        first.remember(f"by the first {number}")
    assert first.heartbeat() == 1
    second = agent("two", **policy)
    assert second.last_anchor == first.last_anchor is not None
    assert second.on_job_complete() is None
    second.remember("by the second 0")
    second.remember("by the second 1")
    assert second.is_dirty
    assert second.heartbeat() is None
    third = agent("three", **policy)
    assert third.heartbeat() is None
    third.remember("by the third")
    assert third.heartbeat() == 2
    assert agent("four", **policy).verify().verdict is Verdict.IN_SYNC
    assert first.heartbeat() is None  # who comes back sees what the others did
    assert not first.is_dirty


def test_a_stateless_agent_keeps_the_time_between_anchors(agent: Callable[..., AgentMemory]) -> None:
    first = agent("one", heartbeat_seconds=3600)
    first.remember("a")
    assert first.heartbeat() == 1
    second = agent("two", heartbeat_seconds=3600)
    second.remember("b")
    assert second.heartbeat() is None
    assert second.on_job_complete() == 2
    assert agent("three").on_job_complete() is None


def test_agents_of_one_memory_read_what_each_other_wrote(agent: Callable[..., AgentMemory]) -> None:
    first, second = agent("one"), agent("two")
    wanted = first.remember("the door code is 4711", tags=["home"], session="s")
    assert [hit["id"] for hit in second.recall("door code")] == [wanted]
    assert second.memory_root() == first.memory_root()
    assert second.forget(wanted) == 1
    assert first.count() == 0


def test_an_edit_behind_its_back_shows_against_the_anchor(agent: Callable[..., AgentMemory]) -> None:
    first = agent("one")
    first.backend.remember_many([("the door code is 4711", ["home"]), ("the sky is blue", None)])
    assert first.anchor() == 1
    backend = first.backend
    assert isinstance(backend, PostgresBackend)
    with backend._connections.lengthy() as connection:
        connection.execute("UPDATE memories SET fragment = replace(fragment, '4711', '1147')")
    for name in ("one", "another"):
        found = agent(name).verify()
        assert not found
        assert found.verdict is Verdict.TAMPERED
    with backend._connections.lengthy() as connection:
        connection.execute("UPDATE memories SET fragment = replace(fragment, '1147', '4711')")
    assert agent("another").verify().verdict is Verdict.IN_SYNC


def test_the_command_line(tmp_path: Path, server: Server) -> None:
    name = "command_line"
    with server.superuser() as connection:
        connection.execute(f"CREATE DATABASE {name}")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO {server.role}")
    Wallet.create(tmp_path / "wallet.json", PASSPHRASE)

    def mycelium(home: str, *arguments: str, code: int = 0, dsn: str | None = None) -> str:
        settings = {
            "MYCELIUM_HOME": str(tmp_path / home),
            "MYCELIUM_CHAIN_FILE": str(tmp_path / "chain.db"),
            "MYCELIUM_WALLET": str(tmp_path / "wallet.json"),
            "MYCELIUM_DECRYPT_KEY": PASSPHRASE,
            "MYCELIUM_BACKEND": "postgres",
            "MYCELIUM_DSN": dsn or server.dsn.replace(f"/{server.database}?", f"/{name}?"),
        }
        env = {key: value for key, value in os.environ.items() if not key.startswith("MYCELIUM_")} | settings
        done = subprocess.run(
            [sys.executable, "-m", "mycelium_cli", *arguments], env=env, cwd=tmp_path, check=False,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert server.password not in done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    mycelium("one", "memory", "remember", "the door code is 4711", "--tag", "home")
    found = json.loads(mycelium("two", "memory", "recall", "door code", "--json"))
    assert [hit["content"] for hit in found] == ["the door code is 4711"]
    mycelium("one", "memory", "anchor")
    status = json.loads(mycelium("two", "memory", "status", "--local", "--json"))
    assert (status["records"], status["dirty"]) == (1, False)
    assert status["last_anchor"]["version"] == 1
    assert "IN_SYNC" in mycelium("three", "memory", "status")
    mycelium("three", "doctor")
    refused = mycelium(
        "one", "memory", "recall", "x", code=5, dsn=f"postgresql://a:{server.password}@/b?host={tmp_path}"
    )
    assert "cannot connect" in refused
