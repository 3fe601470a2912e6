"""AgentContext: who an agent is and on which network, with its key unlocked at the moment of signing and
not before.

Importing this module, and making a context, loads no Stellar library and asks nobody anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mycelium_sdk.chain.addresses import WELL_KNOWN, local_contract_id
from mycelium_sdk.config import load_configuration
from mycelium_sdk.errors import ConfigError, InputError, WalletNotFound
from mycelium_sdk.home import Home
from mycelium_sdk.networks import Network, resolve_network
from mycelium_sdk.strkey import check_contract
from mycelium_sdk.threads import ThreadLock
from mycelium_sdk.wallet import Wallet, require_passphrase

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from stellar_sdk import Keypair, xdr

    from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
    from mycelium_sdk.chain.base import Receipt
    from mycelium_sdk.chain.indexer import IndexerClient
    from mycelium_sdk.chain.rpc import RpcChain
    from mycelium_sdk.config import Configuration

__all__ = ["AgentContext", "ContractCall"]


@dataclass(frozen=True, slots=True)
class ContractCall:
    """What calling a contract gave.

    `value` is the result as Python has it (int, bytes, str, bool, list, dict, `Address`, None), `raw` as
    the contract returned it. `receipt` is None where nothing was sent.
    """

    value: Any
    raw: xdr.SCVal | None
    receipt: Receipt | None


class AgentContext:
    """An agent's account and network.

    `wallet`: the wallet file (default: from configuration; a relative path is relative to the folder of the
    nearest `mycelium.toml`, else to the working folder). `network_type`: "local", "standalone", "testnet"
    or "mainnet" (default: from configuration, else "local"). `passphrase`: the wallet's, or a function that
    asks for it, called when something is first signed; default `MYCELIUM_DECRYPT_KEY`. `home`: the home
    folder. `cross_check`: URLs of further RPC servers of the network, which must agree about every anchor
    (default: from configuration). `notify` is told in a sentence what is done unasked on `local` (funding
    the account, deploying the contract).

    May be used from several threads. Close it, or use it as a context manager.

    Raises:
        WalletNotFound, WalletError: there is no wallet, or its file cannot be used.
        ConfigError: the configuration or the network cannot be used.
    """

    def __init__(
        self,
        wallet: str | os.PathLike[str] | None = None,
        network_type: str | None = None,
        passphrase: str | Callable[[], str] | None = None,
        *,
        configuration: Configuration | None = None,
        home: Home | str | os.PathLike[str] | None = None,
        cross_check: Sequence[str] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._set_up(network_type, configuration, home, notify)
        if cross_check is not None:
            self._cross_check = tuple(cross_check)
        path = self.configuration.wallet.path if wallet is None else self.configuration.resolve(wallet)
        self._wallet: Wallet | None = Wallet.load(path)
        self._passphrase = passphrase

    @staticmethod
    def read_only(
        network: str | None = None,
        *,
        configuration: Configuration | None = None,
        home: Home | str | os.PathLike[str] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> AgentContext:
        """A context without a wallet, for looking at other people's anchors. It cannot sign and has no
        address."""
        return _ReadOnlyContext(network, configuration, home, notify)

    def _set_up(
        self,
        network_type: str | None,
        configuration: Configuration | None,
        home: Home | str | os.PathLike[str] | None,
        notify: Callable[[str], None] | None,
    ) -> None:
        if configuration is None:
            # Given as an override, so that a file's settings for another network are not taken for this
            # one's.
            configuration = load_configuration(overrides={"onchain.network": network_type})
        self.configuration = configuration
        self.network: Network = resolve_network(network_type, configuration)
        if home is None:
            self.home: Home = configuration.home
        else:
            self.home = home if isinstance(home, Home) else Home(Path(home).absolute())
        self._notify = notify
        self._cross_check = configuration.onchain.cross_check
        self._lock = ThreadLock()
        self._chain: RpcChain | None = None
        self._witnesses: tuple[RpcChain, ...] | None = None
        self._indexers: dict[str, IndexerClient] = {}
        self._keypair: Keypair | None = None

    @property
    def address(self) -> str:
        """The account's G-address; needs no passphrase. Raises `WalletNotFound` on a read-only context."""
        return self._require_wallet().address

    def keypair(self) -> Keypair:
        """The account's key pair, unlocked at the first call and kept in this object only.

        Raises:
            PassphraseRequired, WrongPassphrase, WalletError: the wallet cannot be opened.
        """
        with self._lock:
            if self._keypair is None:
                from stellar_sdk import Keypair

                wallet, given = self._require_wallet(), self._passphrase
                passphrase = require_passphrase(given() if callable(given) else given)
                self._keypair = Keypair.from_secret(wallet.unlock(passphrase).seed)
            return self._keypair

    @property
    def chain(self) -> RpcChain:
        """The network's chain client, opened at the first use: see `ChainClient` for what it does and
        raises."""
        with self._lock:
            if self._chain is None:
                self._chain = self._open_chain()
            return self._chain

    def anchor_address(self, contract_id: str | None = None) -> str:
        """The C-address of the MemoryAnchor contract: the given one, else the configured one, else
        `local`'s own.

        Does not ask the chain. Raises `ConfigError` where nothing says which contract, with the options.
        """
        chosen = contract_id or self.configuration.memory.anchor_address
        if chosen is not None:
            return check_contract(chosen)
        if self.network.name == "local":
            return local_contract_id(self.network.passphrase)
        known = WELL_KNOWN.get(self.network.name)
        older = "" if known is None else f", or the older contract's deployment {known} (no compare-and-set)"
        raise ConfigError(
            f"no MemoryAnchor contract is chosen for the network {self.network.name}",
            hint="set `[memory] anchor_address` or MYCELIUM_ANCHOR_ADDRESS to one: your own, made by "
            f"`mycelium contract deploy`{older}",
        )

    def anchor_client(self, contract_id: str | None = None) -> MemoryAnchorClient:
        """The client of that contract. On `local` its own contract is deployed now if it is not there yet."""
        from mycelium_sdk.chain.anchor_client import MemoryAnchorClient

        address = self.anchor_address(contract_id)
        if self._is_local_contract(address):
            from mycelium_sdk.chain.deployment import ensure_local_contract

            ensure_local_contract(self.chain, self._notify)
        return MemoryAnchorClient(self.chain, address)

    @property
    def has_chain(self) -> bool:
        """Whether there is a chain to ask: False only for an embedded one whose file nobody has made yet."""
        if self.network.rpc_url is not None:
            return True
        try:
            return self.chain_file.stat().st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # opening it says what is wrong
            return True

    def let_go_of_chain(self) -> None:
        """Close the chain's client; the next use opens what is there then."""
        with self._lock:
            chain, self._chain = self._chain, None
        if chain is not None:
            chain.close()

    def found_anchor_client(self, contract_id: str | None = None) -> MemoryAnchorClient | None:
        """The client of that contract, for who only looks: nothing is made. None where `local` has no chain
        yet, or a chain without its own contract."""
        from mycelium_sdk.chain.anchor_client import MemoryAnchorClient

        address = self.anchor_address(contract_id)
        if self._is_local_contract(address):
            from mycelium_sdk.chain.deployment import is_deployed

            if not self.has_chain or not is_deployed(self.chain, address):
                return None
        return MemoryAnchorClient(self.chain, address)

    def _is_local_contract(self, address: str) -> bool:
        return self.network.name == "local" and address == local_contract_id(self.network.passphrase)

    def witness_clients(self, contract_id: str | None = None) -> tuple[MemoryAnchorClient, ...]:
        """The clients of that contract over the servers of `cross_check`, in their order."""
        from mycelium_sdk.chain.anchor_client import MemoryAnchorClient

        address = self.anchor_address(contract_id)
        with self._lock:
            if self._witnesses is None:
                from mycelium_sdk.chain.rpc import RpcChain

                passphrase = self.network.passphrase
                self._witnesses = tuple(RpcChain(url, passphrase) for url in self._cross_check)
            return tuple(MemoryAnchorClient(chain, address) for chain in self._witnesses)

    def indexer_client(self, contract_id: str | None = None) -> IndexerClient | None:
        """The client of the configured indexer (`[indexer] url`) for that contract, None if none is
        configured. It asks nothing now, and is closed with the context."""
        url = self.configuration.indexer.url
        if url is None:
            return None
        address = self.anchor_address(contract_id)
        with self._lock:
            if address not in self._indexers:
                from mycelium_sdk.chain.indexer import IndexerClient

                self._indexers[address] = IndexerClient(url, self.network.passphrase, address)
            return self._indexers[address]

    def call_contract(
        self,
        contract_id: str,
        function: str,
        args: Sequence[xdr.SCVal] = (),
        *,
        read_only: bool = False,
    ) -> ContractCall:
        """Call a contract's function, arguments as `stellar_sdk.scval` makes them.

        With `read_only` the call is only simulated: free, unsigned, without effect, and archived entries
        are read too.

        Raises:
            InputError: the address, the function's name or an argument is of the wrong kind.
            ContractFailed, ContractNotFound, ChainError: as `ChainClient.simulate` says.
            TransactionFailed, Unsettled: as `ChainClient.submit` says.
        """
        from stellar_sdk import scval, xdr

        from mycelium_sdk.chain import operations

        if not all(isinstance(argument, xdr.SCVal) for argument in args):
            raise InputError(
                "an argument is not a contract value",
                hint="make each one with stellar_sdk.scval, e.g. scval.to_bytes(b'...')",
            )
        work = operations.invoke(check_contract(contract_id), function, args)
        if read_only:
            raw, receipt = self.chain.simulate(work).value, None
        else:
            receipt = self.chain.submit(work, self.keypair())
            raw = receipt.value
        return ContractCall(None if raw is None else scval.to_native(raw), raw, receipt)

    def deploy_contract(self, wasm: bytes | str | os.PathLike[str]) -> str:
        """Put a contract on the network, from its WebAssembly or the path of it; its C-address.

        Raises:
            InputError: the file cannot be read or is no WebAssembly.
            TransactionFailed, Unsettled, ChainError: as `ChainClient.submit` says.
        """
        from mycelium_sdk.chain.deployment import deploy

        if not isinstance(wasm, bytes):
            path = self.configuration.resolve(wasm)
            try:
                wasm = path.read_bytes()
            except OSError as error:
                raise InputError(f"cannot read {path}", hint="give the path of a .wasm file") from error
        return deploy(self.chain, wasm, self.keypair()).contract_id

    def files(self) -> tuple[Path, ...]:
        """The files that this context is made from, whether they are there or not: wallet, configuration, and
        the embedded chain."""
        own = (self.configuration.file, None if self._wallet is None else self._wallet.path)
        return (self.chain_file, *(file for file in own if file is not None))

    @property
    def chain_file(self) -> Path:
        """Where the embedded chain is looked for. Makes no folder."""
        return self.configuration.onchain.chain_file or self.home.chain_place

    def close(self) -> None:
        """Forget the key and release connections and files. Closing twice is harmless."""
        with self._lock:
            self._keypair = None
            for chain in (self._chain, *(self._witnesses or ())):
                if chain is not None:
                    chain.close()
            for indexer in self._indexers.values():
                indexer.close()
            self._chain = self._witnesses = None
            self._indexers.clear()

    def __enter__(self) -> AgentContext:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        who = "read-only" if self._wallet is None else f"address={self._wallet.address!r}"
        return f"AgentContext({who}, network={self.network.name!r})"

    def _require_wallet(self) -> Wallet:
        if self._wallet is None:
            raise WalletNotFound(
                "a read-only context has no wallet",
                hint="make an AgentContext with a wallet to have an address",
            )
        return self._wallet

    def _open_chain(self) -> RpcChain:
        from mycelium_sdk.chain.fees import DEFAULT_MAX_FEE

        max_fee = self.configuration.onchain.max_fee or DEFAULT_MAX_FEE
        if self.network.rpc_url is None:
            from mycelium_sdk.chain.embedded import open_embedded

            path = self.configuration.onchain.chain_file or self.home.chain_file
            return open_embedded(path, self.network.passphrase, notify=self._notify, max_fee=max_fee)
        from mycelium_sdk.chain.rpc import RpcChain

        return RpcChain(self.network.rpc_url, self.network.passphrase, max_fee=max_fee)


class _ReadOnlyContext(AgentContext):
    """See `AgentContext.read_only`."""

    def __init__(
        self,
        network_type: str | None,
        configuration: Configuration | None,
        home: Home | str | os.PathLike[str] | None,
        notify: Callable[[str], None] | None,
    ) -> None:
        self._set_up(network_type, configuration, home, notify)
        self._wallet = None
        self._passphrase = None
