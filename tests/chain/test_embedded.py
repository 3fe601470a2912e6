"""The embedded chain as the network `local`: it sets itself up, for several processes at once too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair, StrKey

from mycelium_localnet import Chain
from mycelium_localnet.errors import ChainBusyError
from mycelium_sdk.chain import operations
from mycelium_sdk.chain.addresses import (
    LOCAL_DEPLOYER,
    LOCAL_SALT,
    WELL_KNOWN,
    local_contract_id,
    local_deployer_seed,
)
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.artifact import memory_anchor_sha256, memory_anchor_wasm
from mycelium_sdk.chain.contracts import code_hash
from mycelium_sdk.chain.deployment import deploy, ensure_local_contract
from mycelium_sdk.chain.embedded import EmbeddedChain, open_embedded
from mycelium_sdk.errors import ChainError, ChainUnavailable, ConfigError, ContractNotFound, InputError
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.retry import Pace, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_localnet.faults.kinds import FaultKind
    from mycelium_localnet.rows import Submission
    from tests.chain.conftest import FakeClock

ROOT = bytes(31) + b"\x01"

MACHINE = """
import json, sys
from pathlib import Path
from stellar_sdk import Keypair
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.deployment import ensure_local_contract
from mycelium_sdk.chain.embedded import open_embedded

path, seed, anchors = Path(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3])
said = []
print("ready", flush=True)
sys.stdin.readline()
chain = open_embedded(path, "Standalone Network ; February 2017", notify=said.append)
contract_id = ensure_local_contract(chain, said.append)
client, signer = MemoryAnchorClient(chain, contract_id), Keypair.from_raw_ed25519_seed(seed)
receipts = [client.set_anchor(signer, bytes(31) + bytes([n + 1])) for n in range(anchors)]
chain.close()
print(json.dumps({"contract": contract_id, "said": said, "versions": [r.version for r in receipts],
                  "hashes": [r.hash for r in receipts]}))
"""


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedChain]:
    chain = open_embedded(tmp_path / "chain.db", STANDALONE_PASSPHRASE)
    yield chain
    chain.close()


def machines(path: Path, seeds: list[bytes], anchors: int) -> list[dict[str, Any]]:
    """Processes that open the chain file at the same moment and go on without each other."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", MACHINE, str(path), seed.hex(), str(anchors)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for seed in seeds
    ]  # fmt: skip
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = []
    for process in started:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        answers.append(json.loads(output))
    return answers


def test_two_processes_set_up_one_contract(tmp_path: Path) -> None:
    first, second = machines(tmp_path / "chain.db", [bytes(31) + b"\x01", bytes(31) + b"\x02"], 3)
    assert first["contract"] == second["contract"] == local_contract_id(STANDALONE_PASSPHRASE)
    deployments = [line for line in first["said"] + second["said"] if line.startswith("deployed")]
    assert len(deployments) == 1
    assert first["versions"] == second["versions"] == [1, 2, 3]


def test_two_processes_of_one_account_lose_nothing(tmp_path: Path) -> None:
    first, second = machines(tmp_path / "chain.db", [bytes(32), bytes(32)], 4)
    assert sorted(first["versions"] + second["versions"]) == list(range(1, 9))
    assert len(set(first["hashes"] + second["hashes"])) == 8


def test_setting_up_is_done_once_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        chain = open_embedded(tmp_path / "chain.db", STANDALONE_PASSPHRASE, notify=said.append)
        contract_id = ensure_local_contract(chain, said.append)
        MemoryAnchorClient(chain, contract_id).set_anchor(Keypair.from_raw_ed25519_seed(bytes(32)), ROOT)
        chain.close()
    assert [line.split()[0] for line in said] == ["deployed", "funded"]
    assert contract_id in said[0]


def test_the_deployed_contract_is_the_packages(embedded: EmbeddedChain) -> None:
    contract_id = ensure_local_contract(embedded, None)
    assert code_hash(embedded, contract_id) == memory_anchor_sha256()


def test_the_address_is_the_same_on_every_local_chain(tmp_path: Path) -> None:
    found = set()
    for name in ("a", "b"):
        chain = open_embedded(tmp_path / name, STANDALONE_PASSPHRASE)
        found.add(ensure_local_contract(chain, None))
        chain.close()
    assert found == {"CC2ASHU56TXYKJR2UDRL2WXMJ2YD3AX6RDKJD2XVTDXNXQ6MZ5HR6L3A"}


def test_the_address_without_a_stellar_library_is_the_same() -> None:
    assert Keypair.from_raw_ed25519_seed(local_deployer_seed()).public_key == LOCAL_DEPLOYER
    for passphrase in (STANDALONE_PASSPHRASE, "another, with ü"):
        expected = operations.contract_id_of(passphrase, LOCAL_DEPLOYER, LOCAL_SALT)
        assert local_contract_id(passphrase) == expected


def test_well_known_addresses_are_contracts() -> None:
    assert all(StrKey.is_valid_contract(address) for address in WELL_KNOWN.values())
    assert set(WELL_KNOWN) == {"testnet", "mainnet"}


def test_each_new_chain_has_another_id(tmp_path: Path) -> None:
    ids = set()
    for name in ("a", "b", "a"):
        chain = open_embedded(tmp_path / name, STANDALONE_PASSPHRASE)
        ids.add(chain.identity().chain_id)
        chain.close()
    assert len(ids) == 2
    assert None not in ids


def test_funding_is_for_accounts_that_are_not_there(embedded: EmbeddedChain) -> None:
    address = Keypair.from_raw_ed25519_seed(bytes(32)).public_key
    assert embedded.fund(address)
    assert not embedded.fund(address)


def test_the_friendbots_refusal_is_an_error(embedded: EmbeddedChain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "friendbot_url", lambda: "http://localnet.invalid/elsewhere")
    with pytest.raises(ChainError, match="404"):
        embedded.fund(Keypair.from_raw_ed25519_seed(bytes(32)).public_key)


@pytest.mark.parametrize("kind", ["http_503", "http_504", "html", "drop"])
@pytest.mark.parametrize("carried_out", [True, False])
def test_a_lost_answer_of_the_friendbot_is_asked_for_again(kind: FaultKind, *, carried_out: bool) -> None:
    address = Keypair.from_raw_ed25519_seed(bytes(32)).public_key
    with Chain.open(":memory:") as localnet:
        pace = Pace(sleep=lambda _: None)
        chain = EmbeddedChain(localnet, localnet.passphrase, policy=RetryPolicy(pace=pace))
        options: dict[str, Any] = {} if kind == "http_503" else {"carried_out": carried_out}
        localnet.fault(kind, count=3, methods=["friendbot"], **options)
        chain.fund(address)
        assert not chain.fund(address), "it is there"
        localnet.fault(kind, count=100, methods=["friendbot"], **options)
        other = Keypair.from_raw_ed25519_seed(bytes(31) + b"\x01").public_key
        if carried_out and options:
            chain.fund(other)
            assert not chain.fund(other)
        else:
            with pytest.raises(ChainUnavailable):
                chain.fund(other)


def test_deploying_twice_to_one_address_is_an_error(embedded: EmbeddedChain) -> None:
    signer = Keypair.from_raw_ed25519_seed(bytes(32))
    first = deploy(embedded, memory_anchor_wasm(), signer, salt=bytes(32))
    assert first.uploaded is not None
    assert first.contract_id == operations.contract_id_of(STANDALONE_PASSPHRASE, signer.public_key, bytes(32))
    assert first.fee_charged == first.uploaded.fee_charged + first.created.fee_charged
    with pytest.raises(ChainError, match="EXISTING_VALUE"):
        deploy(embedded, memory_anchor_wasm(), signer, salt=bytes(32))
    second = deploy(embedded, memory_anchor_wasm(), signer)
    assert second.uploaded is None, "the code is there already"
    assert second.contract_id != first.contract_id


def test_what_is_no_contract_is_not_deployed(embedded: EmbeddedChain) -> None:
    signer = Keypair.from_raw_ed25519_seed(bytes(32))
    with pytest.raises(InputError, match="not WebAssembly"):
        deploy(embedded, b"#!/bin/sh", signer)
    with pytest.raises(InputError, match="32 bytes, not 5"):
        deploy(embedded, memory_anchor_wasm(), signer, salt=b"short")
    with pytest.raises(ChainError):
        deploy(embedded, b"\x00asm" + bytes(20), signer)


def test_without_the_embedded_chain_the_error_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mycelium_localnet", None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        open_embedded(tmp_path / "chain.db", STANDALONE_PASSPHRASE)
    assert "pip install" in str(caught.value.hint)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    path.write_bytes(b"not a chain" * 1000)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        open_embedded(path, STANDALONE_PASSPHRASE)
    assert caught.value.hint
    assert path.read_bytes() == b"not a chain" * 1000


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        open_embedded(tmp_path / "missing" / "chain.db", STANDALONE_PASSPHRASE)


def test_a_chain_of_another_passphrase_is_another_network(tmp_path: Path) -> None:
    from mycelium_sdk.errors import WrongDomain

    Chain.open(tmp_path / "chain.db", passphrase="Another Network").close()
    chain = open_embedded(tmp_path / "chain.db", STANDALONE_PASSPHRASE)
    with pytest.raises(WrongDomain):
        chain.identity()
    chain.close()


def test_a_contract_that_is_not_there(embedded: EmbeddedChain) -> None:
    with pytest.raises(ContractNotFound):
        code_hash(embedded, StrKey.encode_contract(bytes(32)))


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    chain = open_embedded(tmp_path / "chain.db", STANDALONE_PASSPHRASE)
    chain.close()
    chain.close()


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "deleted"])
def test_a_chain_file_that_was_taken_away_is_said_at_once(
    tmp_path: Path, clock: FakeClock, *, replaced: bool
) -> None:
    """It will not come back, so it is not asked again; and it is no matter of the network."""
    path = tmp_path / "chain.db"
    chain = EmbeddedChain(Chain.open(path), STANDALONE_PASSPHRASE, policy=RetryPolicy(pace=clock.pace()))
    contract_id = ensure_local_contract(chain, None)
    client, signer = MemoryAnchorClient(chain, contract_id), Keypair.from_raw_ed25519_seed(bytes(32))
    client.set_anchor(signer, ROOT)
    path.rename(tmp_path / "elsewhere.db")
    if replaced:
        Chain.open(path).close()
    for ask in (
        chain.identity,
        lambda: client.get_anchor(signer.public_key),
        lambda: client.entry_state(signer.public_key),
        lambda: client.set_anchor(signer, ROOT),
        lambda: chain.fund(LOCAL_DEPLOYER),
    ):
        with pytest.raises(ConfigError, match="deleted or replaced") as caught:
            ask()
        assert str(path) in str(caught.value)
        assert "open the file again" in str(caught.value.hint)
    assert clock.slept == []
    chain.close()


def test_a_chain_file_that_is_taken_away_before_sending(tmp_path: Path, clock: FakeClock) -> None:
    """The transaction was not taken: what is missing is what would take it."""
    path = tmp_path / "chain.db"
    chain = EmbeddedChain(Chain.open(path), STANDALONE_PASSPHRASE, policy=RetryPolicy(pace=clock.pace()))
    client = MemoryAnchorClient(chain, ensure_local_contract(chain, None))
    signer = Keypair.from_raw_ed25519_seed(bytes(32))
    with pytest.raises(ConfigError, match="deleted or replaced"):
        client.set_anchor(signer, ROOT, before_send=lambda _: path.unlink())
    assert clock.slept == []
    chain.close()


def test_a_closed_chain_is_said_at_once(tmp_path: Path, clock: FakeClock) -> None:
    chain = EmbeddedChain(
        Chain.open(tmp_path / "chain.db"), STANDALONE_PASSPHRASE, policy=RetryPolicy(pace=clock.pace())
    )
    chain.close()
    with pytest.raises(ChainError, match="was closed") as caught:
        chain.identity()
    assert not caught.value.retryable
    assert clock.slept == []


def test_a_busy_chain_file_is_worth_another_attempt(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain itself is well, so its internal error is what any server's is."""
    localnet = Chain.open(tmp_path / "chain.db")
    chain = EmbeddedChain(localnet, STANDALONE_PASSPHRASE, policy=RetryPolicy(pace=clock.pace()))
    busy = [ChainBusyError("another process is writing")] * 2
    submit = localnet.submit

    def once_free(envelope: bytes) -> Submission:
        if busy:
            raise busy.pop()
        return submit(envelope)

    monkeypatch.setattr(localnet, "submit", once_free)
    contract_id = ensure_local_contract(chain, None)
    assert code_hash(chain, contract_id) == memory_anchor_sha256()
    assert busy == []
    chain.close()


def test_a_forked_child_opens_the_file_itself(tmp_path: Path) -> None:
    """And takes nothing from its parent when it closes it."""
    path = tmp_path / "chain.db"
    with closing(open_embedded(path, STANDALONE_PASSPHRASE)) as chain:
        client = MemoryAnchorClient(chain, ensure_local_contract(chain, print))
        signer = Keypair.random()
        assert client.set_anchor(signer, ROOT).version == 1
        child = os.fork()
        if child == 0:
            version = client.set_anchor(signer, ROOT).version
            chain.close()
            os._exit(version)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 2
        assert client.set_anchor(signer, ROOT).version == 3


def test_a_forked_child_that_closes_late_removes_nothing(tmp_path: Path) -> None:
    """Its parent is done, and another process was killed with what it wrote still in the log."""
    path = tmp_path / "chain.db"
    chain = open_embedded(path, STANDALONE_PASSPHRASE)
    client = MemoryAnchorClient(chain, ensure_local_contract(chain, print))
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(telling)
        os.read(told, 1)
        chain.close()
        os._exit(0)
    os.close(told)
    chain.close()
    signer = Keypair.random()
    writer = os.fork()
    if writer == 0:
        own = open_embedded(path, STANDALONE_PASSPHRASE)
        MemoryAnchorClient(own, client.contract_id).set_anchor(signer, ROOT)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(writer, 0)
    os.close(telling)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    with closing(open_embedded(path, STANDALONE_PASSPHRASE)) as again:
        assert MemoryAnchorClient(again, client.contract_id).get_version(signer.public_key) == 1
