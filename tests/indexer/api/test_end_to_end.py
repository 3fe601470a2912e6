"""From an anchor on the chain to an answer over HTTP: the network's own host, an ingester, real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair

from mycelium_indexer.api.background import beside
from mycelium_indexer.api.listening import listen, origin_of
from mycelium_indexer.ingest import Ingester
from mycelium_indexer.store import open_store
from mycelium_localnet import Chain
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.deployment import ensure_local_contract
from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import ConfigError, WrongDomain
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.wallet import Wallet
from tests.canaries import PASSPHRASE, TEXT

from .ground import Api, anchors_of, fill, owner_number, serving, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_indexer.store.base import IndexStore

TIMEOUT = 60
PERSON = Keypair.from_raw_ed25519_seed(b"somebody who anchors in a test..")


@pytest.fixture
def client() -> Iterator[MemoryAnchorClient]:
    """The contract on a chain in memory, and somebody with an account."""
    chain = EmbeddedChain(Chain.open(":memory:", seed=b"api tests"), STANDALONE_PASSPHRASE)
    contract = ensure_local_contract(chain, None)
    chain.fund(PERSON.public_key)
    yield MemoryAnchorClient(chain, contract)
    chain.close()


def test_an_anchor_is_in_the_api_within_one_poll(store: IndexStore, client: MemoryAnchorClient) -> None:
    ingester = Ingester(client, store)
    owner = PERSON.public_key
    with serving(store, settings(contract=client.contract_id)) as api:
        assert api.get(f"/memory/{owner}").status == 503
        assert not ingester.poll_once()
        assert api.get(f"/memory/{owner}").status == 404
        for version in (1, 2, 3):
            receipt = client.set_anchor(PERSON, bytes([version]) * 32, b"https://example.org/%d" % version)
            ingester.poll_once()
            answer = api.get(f"/memory/{owner}").json
            assert (answer["version"], answer["root"]) == (version, f"{version:02d}" * 32)
            assert (answer["ledger"], answer["tx"]) == (receipt.ledger, receipt.hash)
            assert answer["as_of_ledger"] >= receipt.ledger
        history = api.get(f"/memory/{owner}/history").json
    assert [item["version"] for item in history["items"]] == [3, 2, 1]
    assert history["complete"]


class Command:
    """`mycelium indexer serve` in a folder and home of its own, without a wallet in sight."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MYCELIUM_")}
        self.environment = {**kept, "MYCELIUM_HOME": str(folder / "home")}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "mycelium_cli", "indexer", "serve", "--log-format", "json", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env={**self.environment, **environment},
        )  # fmt: skip

    @contextlib.contextmanager
    def serving(self, *arguments: str, **environment: str) -> Iterator[tuple[Api, subprocess.Popen[str]]]:
        """A server that is ready; it must end by itself when it is told to."""
        with self.start("--port", "0", *arguments, **environment) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                assert line.startswith("ready: http://127.0.0.1:"), line
                yield Api(int(line.rpartition(":")[2])), process
            finally:
                process.kill()


@pytest.fixture
def command(tmp_path: Path) -> Command:
    folder = tmp_path / "work"
    folder.mkdir()
    return Command(folder)


def test_one_process_follows_and_answers(command: Command, tmp_path: Path) -> None:
    """A memory is anchored by the SDK, and seen through `serve --ingest`, which ends in order."""
    wallet = Wallet.create(tmp_path / "private" / "wallet.json", PASSPHRASE)
    configuration = load_configuration(
        start=command.folder,
        env=command.environment,
        overrides={"wallet.path": str(wallet.path)},
    )
    with (
        AgentContext(configuration=configuration, passphrase=PASSPHRASE) as context,
        AgentMemory(context) as memory,
    ):
        memory.remember(TEXT)
        assert memory.anchor() == 1
        with command.serving("--ingest", "--interval", "0.05") as (api, process):
            path = f"/memory/{context.address}"
            until(lambda: api.get(path).status == 200)
            etag = api.get(path).headers["ETag"]
            memory.remember(TEXT + " again")
            assert memory.anchor() == 2
            until(lambda: api.get(path, If_None_Match=etag).status == 200)
            answer = api.get(path).json
            assert (answer["version"], answer["root"]) == (2, memory.memory_root().hex())
            assert api.get(f"{path}/history").json["complete"] is True
            assert api.get("/readyz").status == 200
            assert b"<html" in api.get("/").body
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=TIMEOUT)
            assert (process.returncode, out) == (0, "")
    lines = [json.loads(line) for line in err.splitlines()]
    assert {line["event"] for line in lines} >= {"following", "read", "answered"}
    assert context.address not in err
    assert TEXT not in err
    assert answer["uri"] not in err


def connects(port: int) -> bool:
    """Whether somebody listens."""
    try:
        socket.create_connection(("127.0.0.1", port), TIMEOUT).close()
    except ConnectionRefusedError:
        return False
    return True


def until(done: Any) -> None:
    """Ask over and over; each question is a round trip, so that the other side gets on meanwhile."""
    for _ in range(20_000):
        if done():
            return
    pytest.fail("it never came")


def test_several_processes_share_a_database(command: Command) -> None:
    """Two that only answer, beside whoever writes; configured by the environment, one by options."""
    file = command.folder / "shared.db"
    store = open_store(str(file))
    made = anchors_of(owner_number(1), [b"", b""])
    source = fill(store, made[:1])
    path = f"/memory/{owner_number(1)}?network=standalone&contract={source.contract}"
    with (
        command.serving(MYCELIUM_INDEXER_DATABASE_URL=str(file), MYCELIUM_INDEXER_RATE_LIMIT="2") as (
            first,
            one,
        ),
        command.serving("--database", "shared.db", "--rate-limit", "0", MYCELIUM_INDEXER_RATE_LIMIT="1") as (
            second,
            other,
        ),
    ):
        assert [api.get(path).json["version"] for api in (first, second)] == [1, 1]
        fill(store, made[1:])
        assert [api.get(path).json["version"] for api in (first, second)] == [2, 2]
        cursor = first.get("/memory?limit=1&" + path.partition("?")[2])
        assert cursor.status == 429
        assert {second.get(path).status for _ in range(5)} == {200}
        for process in (one, other):
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT)
            assert process.returncode == 0
    store.close()


def test_a_port_in_use_is_found_out_before_anything_is_made(command: Command) -> None:
    with contextlib.ExitStack() as stack:
        (taken,) = [stack.enter_context(one) for one in listen("127.0.0.1", 0)]
        port = taken.getsockname()[1]
        with command.start("--ingest", "--port", str(port)) as process:
            _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 3
    assert err.startswith(f"error: port {port} on 127.0.0.1 is in use by another program\nhint: ")
    assert "Traceback" not in err
    assert not (command.folder / "home").exists()


def test_without_a_database_the_way_out_is_named(command: Command) -> None:
    with command.start("--json", "--port", "0") as process:
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 5
    assert json.loads(out)["error"]["hint"] == "run `mycelium indexer run` first"
    assert "Traceback" not in err


def test_a_request_that_is_under_way_is_answered_before_the_end(store: IndexStore) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def latest(self, *args: Any) -> Any:
            entered.set()
            assert leave.wait(TIMEOUT)
            return store.latest(*args)

    fill(store, anchors_of(owner_number(1), [b""]))
    answers: list[int] = []
    slow: Any = Slow()
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(serving(slow, settings()))
        asking = threading.Thread(target=lambda: answers.append(api.get(f"/memory/{owner_number(1)}").status))
        asking.start()
        assert entered.wait(TIMEOUT)
        ending = threading.Thread(target=stack.close)
        ending.start()
        until(lambda: not connects(api.port))
        leave.set()
        ending.join(TIMEOUT)
        asking.join(TIMEOUT)
    assert answers == [200]
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("reader")] == []


def test_what_ends_the_ingester_ends_the_server_and_is_said() -> None:
    ended = threading.Event()

    def fail(_stop: threading.Event) -> None:
        raise WrongDomain("another network")

    with pytest.raises(WrongDomain, match="another network"), beside(fail, ended.set):
        assert ended.wait(TIMEOUT)


def test_the_ingester_is_told_to_end_and_waited_for() -> None:
    finished = []

    def follow(stop: threading.Event) -> None:
        assert stop.wait(TIMEOUT)
        finished.append(True)

    turn = sys.getswitchinterval()
    with beside(follow, lambda: None):
        assert not finished
        assert sys.getswitchinterval() < turn
    assert finished
    assert sys.getswitchinterval() == turn


@pytest.mark.parametrize(("host", "port"), [("203.0.113.1", 0), ("no.such.host.invalid", 0), ("a" * 300, 0)])
def test_a_host_that_is_not_this_machine(host: str, port: int) -> None:
    with pytest.raises(ConfigError) as error:
        listen(host, port)
    assert error.value.hint is not None
    assert "0.0.0.0" in error.value.hint  # noqa: S104


def test_localhost_is_listened_to_on_all_its_addresses_by_one_port() -> None:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(one) for one in listen("localhost", 0)]
        assert len({one.getsockname()[1] for one in sockets}) == 1


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
        ("indexer.example", "http://indexer.example:80"),
    ],
)
def test_the_url_that_is_said(host: str, url: str) -> None:
    assert origin_of(host, 80) == url
