"""AgentContext: who and where, the key unlocked late, and no secret in anything shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, StrKey, scval

from mycelium_sdk.assembly import AnchorDesk
from mycelium_sdk.chain.addresses import WELL_KNOWN, local_contract_id
from mycelium_sdk.chain.artifact import memory_anchor_wasm
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import (
    ChainError,
    ConfigError,
    ContractFailed,
    InputError,
    NotAnchored,
    PassphraseRequired,
    WalletNotFound,
    WrongPassphrase,
)
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_sdk.config import Configuration

PASSPHRASE = "sesame, the passphrase of these tests"
SEED = Keypair.from_raw_ed25519_seed(b"the account of these tests alone").secret
ADDRESS = Keypair.from_secret(SEED).public_key
CONTRACT = StrKey.encode_contract(bytes(range(32)))


@pytest.fixture(scope="module")
def wallet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wallet") / "private" / "wallet.json"
    Wallet.create(path, PASSPHRASE, seed=SEED)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a home of its own, and none of the caller's environment."""
    for name in [name for name in os.environ if name.startswith("MYCELIUM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def context(folder: Path, wallet: Path) -> Iterator[AgentContext]:
    with AgentContext(wallet, passphrase=PASSPHRASE) as made:
        yield made


def configured(folder: Path, text: str) -> Configuration:
    (folder / "mycelium.toml").write_text(text)
    return load_configuration(folder)


def test_the_default_is_the_local_network(context: AgentContext) -> None:
    assert context.network.name == "local"
    assert context.address == ADDRESS
    assert context.home.root.name == "home"


def test_the_most_that_a_transaction_may_cost_is_configured(folder: Path, wallet: Path) -> None:
    with AgentContext(wallet) as context:
        assert context.chain.max_fee == 200_000_000
    with AgentContext(
        wallet, "testnet", configuration=configured(folder, "[onchain]\nmax_fee = 777")
    ) as context:
        assert context.chain.max_fee == 777


def test_what_would_cost_more_is_not_signed_and_the_error_names_the_key(
    folder: Path, wallet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYCELIUM_MAX_FEE", "5000")
    with AgentContext(wallet, passphrase=PASSPHRASE) as context:
        with pytest.raises(ChainError, match=r"the limit is 0\.0005 XLM") as caught:
            context.deploy_contract(memory_anchor_wasm())
        assert "`[onchain] max_fee`" in str(caught.value.hint)
        assert "MYCELIUM_MAX_FEE" in str(caught.value.hint)
    monkeypatch.delenv("MYCELIUM_MAX_FEE")
    with AgentContext(wallet, passphrase=PASSPHRASE) as context:
        assert context.deploy_contract(memory_anchor_wasm()).startswith("C")


def test_the_documented_call(folder: Path, wallet: Path) -> None:
    (folder / ".mycelium").symlink_to(wallet.parent)
    with AgentContext(".mycelium/wallet.json", network_type="testnet", passphrase=PASSPHRASE) as context:
        assert context.address == ADDRESS
        assert context.network.public
        assert context.network.rpc_url == "https://soroban-testnet.stellar.org"


def test_everything_from_the_configuration(folder: Path, wallet: Path) -> None:
    (folder / "mycelium.toml").write_text(
        f'[wallet]\npath = "{wallet}"\n[onchain]\nnetwork = "standalone"\nrpc_url = "http://localhost:8123/rpc"\n'
        f'[memory]\nanchor_address = "{CONTRACT}"\n'
    )
    with AgentContext() as context:
        assert context.address == ADDRESS
        assert (context.network.name, context.network.rpc_url) == ("standalone", "http://localhost:8123/rpc")
        assert context.anchor_address() == CONTRACT


def test_an_argument_overrides_the_file_and_does_not_take_its_server(folder: Path, wallet: Path) -> None:
    (folder / "mycelium.toml").write_text(
        '[onchain]\nnetwork = "standalone"\nrpc_url = "http://localhost:8123/rpc"\n'
    )
    with AgentContext(wallet, network_type="testnet") as context:
        assert context.network.rpc_url == "https://soroban-testnet.stellar.org"
        assert context.configuration.onchain.network == "testnet"


def test_a_missing_wallet_is_named_with_the_fix(folder: Path) -> None:
    with pytest.raises(WalletNotFound) as caught:
        AgentContext()
    assert "mycelium wallet new" in str(caught.value.hint)
    assert list(folder.iterdir()) == []


def test_an_unknown_network(folder: Path, wallet: Path) -> None:
    with pytest.raises(ConfigError):
        AgentContext(wallet, configuration=load_configuration(folder), network_type="testnot")


def test_the_passphrase_is_asked_for_once_and_late(folder: Path, wallet: Path) -> None:
    asked: list[str] = []

    def ask() -> str:
        asked.append("asked")
        return PASSPHRASE

    with AgentContext(wallet, passphrase=ask) as context:
        assert context.address == ADDRESS
        assert context.anchor_address()
        assert asked == []
        assert context.keypair().secret == SEED
        assert context.keypair() is context.keypair()
        assert asked == ["asked"]


def test_the_passphrase_from_the_environment(
    folder: Path, wallet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AgentContext(wallet) as context:
        with pytest.raises(PassphraseRequired, match="missing or empty"):
            context.keypair()
        monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", PASSPHRASE)
        assert context.keypair().public_key == ADDRESS


def test_a_wrong_passphrase_is_refused_and_not_repeated(folder: Path, wallet: Path) -> None:
    with AgentContext(wallet, passphrase="sesame, but wrong") as context:
        with pytest.raises(WrongPassphrase) as caught:
            context.keypair()
        assert "sesame" not in str(caught.value)


def test_nothing_shown_holds_a_secret(context: AgentContext) -> None:
    context.keypair()
    shown = f"{context!r} {context} {vars(context)['_keypair']!r}"
    assert ADDRESS in repr(context)
    assert SEED not in shown
    assert "sesame" not in repr(context)


def test_closing_forgets_the_key(folder: Path, wallet: Path) -> None:
    context = AgentContext(wallet, passphrase=PASSPHRASE)
    context.keypair()
    context.close()
    context.close()
    assert vars(context)["_keypair"] is None


def test_a_read_only_context_has_no_account(folder: Path) -> None:
    with AgentContext.read_only("local") as context:
        assert repr(context) == "AgentContext(read-only, network='local')"
        with pytest.raises(WalletNotFound):
            _ = context.address
        with pytest.raises(WalletNotFound):
            context.keypair()
        assert context.anchor_client().get_anchor(ADDRESS) is None


@pytest.mark.parametrize("network", ["testnet", "mainnet", "standalone"])
def test_no_contract_is_chosen_silently(folder: Path, wallet: Path, network: str) -> None:
    configuration = configured(
        folder, f'[onchain]\nnetwork = "{network}"\nrpc_url = "http://localhost:1/rpc"\n'
    )
    with AgentContext(wallet, configuration=configuration) as context:
        with pytest.raises(ConfigError, match="no MemoryAnchor contract is chosen") as caught:
            context.anchor_client()
        hint = str(caught.value.hint)
        assert "anchor_address" in hint
        assert "MYCELIUM_ANCHOR_ADDRESS" in hint
        assert "mycelium contract deploy" in hint
        assert (WELL_KNOWN.get(network, "none") in hint) == (network in WELL_KNOWN)
        assert context.anchor_address(CONTRACT) == CONTRACT
        with pytest.raises(InputError, match="not a contract address"):
            context.anchor_address(ADDRESS)


def test_the_local_network_sets_itself_up_and_says_so(folder: Path, wallet: Path) -> None:
    said: list[str] = []
    with AgentContext(wallet, passphrase=PASSPHRASE, notify=said.append) as context:
        client = context.anchor_client()
        assert client.contract_id == context.anchor_address() == local_contract_id(context.network.passphrase)
        assert client.set_anchor_if(context.keypair(), 0, bytes(31) + b"\x01").version == 1
    assert [line.split()[0] for line in said] == ["deployed", "funded"]
    assert (folder.parent / "home" / "localnet" / "chain.db").exists()


def test_looking_makes_neither_chain_nor_contract(folder: Path, wallet: Path) -> None:
    said: list[str] = []
    file = folder.parent / "home" / "localnet" / "chain.db"
    with AgentContext(wallet, passphrase=PASSPHRASE, notify=said.append) as context:
        desk = AnchorDesk(context, None)
        assert (desk.identity().latest_ledger, desk.get_anchor(ADDRESS)) == (0, None)
        assert desk.entry_state(ADDRESS).status is EntryStatus.ABSENT
        assert desk.history_sources() == ()
        with pytest.raises(NotAnchored):
            desk.keeper()
        assert not file.exists()
        context.chain.identity()
        assert file.exists()
        assert desk.get_anchor(ADDRESS) is None
    assert said == []


@pytest.mark.timeout(60)
def test_who_is_notified_may_ask_the_memory(folder: Path, wallet: Path) -> None:
    """In the same thread, and in another one that is waited for."""
    said: list[object] = []

    def notify(_: str) -> None:
        said.append(desk.get_anchor(ADDRESS))
        thread = threading.Thread(target=lambda: said.append(desk.get_anchor(ADDRESS)))
        thread.start()
        thread.join()

    with AgentContext(wallet, passphrase=PASSPHRASE, notify=notify) as context:
        desk = AnchorDesk(context, None)
        assert desk.make_ready()
        assert said == [None, None]
        assert not desk.make_ready()


@pytest.mark.timeout(60)
def test_threads_that_need_the_contract_first_all_find_it(folder: Path, wallet: Path) -> None:
    said: list[str] = []
    with AgentContext(wallet, passphrase=PASSPHRASE, notify=said.append) as context:
        desk = AnchorDesk(context, None)
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda _: desk.make_ready(), range(4)))
        assert any(made)
        assert desk.get_anchor(ADDRESS) is None
    assert [line.split()[0] for line in said] == ["deployed"]


@pytest.mark.timeout(60)
def test_a_forked_child_goes_on_with_a_context_that_another_thread_was_using(
    folder: Path, wallet: Path
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def passphrase() -> str:
        asked.set()
        answered.wait()
        return PASSPHRASE

    with AgentContext(wallet, passphrase=passphrase) as context:
        thread = threading.Thread(target=context.keypair)
        thread.start()
        asked.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if context.chain.identity().latest_ledger >= 1 else 1)
        try:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            answered.set()
            thread.join()


def test_the_chain_file_may_be_elsewhere(folder: Path, wallet: Path) -> None:
    configuration = configured(folder, '[onchain]\nchain_file = "shared.db"\n')
    with AgentContext(wallet, configuration=configuration) as context:
        assert context.chain.identity().latest_ledger >= 1
    assert (folder / "shared.db").exists()
    assert not (folder.parent / "home").exists()


def test_a_home_may_be_given(folder: Path, wallet: Path, tmp_path: Path) -> None:
    with AgentContext(wallet, home=tmp_path / "other home") as context:
        context.chain.identity()
    assert (tmp_path / "other home" / "localnet" / "chain.db").exists()


def test_calling_a_contract(context: AgentContext) -> None:
    contract_id = context.anchor_client().contract_id
    owner = scval.to_address(context.address)
    before = context.call_contract(contract_id, "get_version", [owner], read_only=True)
    assert (before.value, before.receipt) == (0, None)
    arguments = [owner, scval.to_bytes(bytes(31) + b"\x01"), scval.to_bytes(b"uri"), scval.to_bytes(b"")]
    made = context.call_contract(contract_id, "set_anchor", arguments)
    assert made.value == 1
    assert made.receipt is not None
    assert context.chain.transaction(made.receipt.hash).status.value == "SUCCESS"
    anchor = context.call_contract(contract_id, "get_anchor", [owner], read_only=True).value
    assert (anchor["version"], anchor["uri"]) == (1, b"uri")
    with pytest.raises(ContractFailed):
        context.call_contract(contract_id, "get_anchor", [scval.to_address(contract_id)], read_only=True)


@pytest.mark.parametrize("name", ["", "x" * 33, "get-version", "get_vérsion", "get version"])
def test_what_cannot_be_called_is_refused_before_anything_is_asked(context: AgentContext, name: str) -> None:
    with pytest.raises(InputError, match="name of a contract's function"):
        context.call_contract(CONTRACT, name, [], read_only=True)
    with pytest.raises(InputError, match="not a contract value"):
        context.call_contract(CONTRACT, "get_version", ["text"], read_only=True)  # type: ignore[list-item]
    with pytest.raises(InputError, match="not a contract address"):
        context.call_contract(ADDRESS, "get_version", [], read_only=True)


def test_a_read_only_call_needs_no_passphrase(folder: Path, wallet: Path) -> None:
    with AgentContext(wallet) as context:
        contract_id = context.anchor_client().contract_id
        owner = [scval.to_address(context.address)]
        assert context.call_contract(contract_id, "is_anchored", owner, read_only=True).value is False
        with pytest.raises(PassphraseRequired):
            context.call_contract(contract_id, "is_anchored", owner)


def test_deploying_a_contract(context: AgentContext, folder: Path) -> None:
    first = context.deploy_contract(memory_anchor_wasm())
    (folder / "contract.wasm").write_bytes(memory_anchor_wasm())
    second = context.deploy_contract("contract.wasm")
    assert StrKey.is_valid_contract(first)
    assert first != second
    assert context.anchor_client(second).get_version(context.address) == 0
    with pytest.raises(InputError, match=r"cannot read .*missing\.wasm"):
        context.deploy_contract("missing.wasm")


def test_what_must_stay_fast_loads_nothing_heavy(folder: Path, wallet: Path) -> None:
    """Import, a context, its address and its contract: what `status --local` needs."""
    code = (
        "import sys\n"
        "from mycelium_sdk.context import AgentContext\n"
        "import mycelium_sdk.chain.base, mycelium_sdk.chain.anchors\n"
        f"with AgentContext({str(wallet)!r}) as context:\n"
        "    context.address, context.anchor_address(), repr(context)\n"
        "heavy = {'stellar_sdk', 'cryptography', 'nacl', 'pydantic', 'requests', 'mycelium_localnet'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
