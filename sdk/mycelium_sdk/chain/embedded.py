"""Opens the embedded chain for the network `local`: the same chain client, over a chain in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.chain.deployment import ensure_funded
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.errors import ChainError, ChainUnavailable, ConfigError, MyceliumError

if TYPE_CHECKING:
    from pathlib import Path

    from stellar_sdk import Keypair

    from mycelium_localnet import Chain
    from mycelium_sdk.chain.base import BeforeSend, Receipt, Work
    from mycelium_sdk.chain.deployment import Notify
    from mycelium_sdk.chain.retry import RetryPolicy

__all__ = ["EmbeddedChain", "open_embedded"]


class EmbeddedChain(RpcChain):
    """A `ChainClient` over an embedded chain, which it closes with itself. `localnet` is that chain.

    The account that signs a transaction is created and funded when it is not there, which `notify` is told.
    """

    def __init__(
        self,
        localnet: Chain,
        passphrase: str,
        *,
        notify: Notify | None = None,
        policy: RetryPolicy | None = None,
    ) -> None:
        from mycelium_localnet import IN_PROCESS_URL, InProcessClient

        super().__init__(IN_PROCESS_URL, passphrase, client=InProcessClient(localnet), policy=policy)
        self.localnet = localnet
        self._notify = notify
        self._funded: set[str] = set()

    def submit(self, work: Work, signer: Keypair, *, before_send: BeforeSend | None = None) -> Receipt:
        """See `ChainClient`."""
        if signer.public_key not in self._funded:
            ensure_funded(self, signer.public_key, self._notify)
            self._funded.add(signer.public_key)
        return super().submit(work, signer, before_send=before_send)

    def close(self) -> None:
        """See `ChainClient`."""
        super().close()
        self.localnet.close()


def open_embedded(path: Path, passphrase: str, *, notify: Notify | None = None) -> EmbeddedChain:
    """Open the chain file at `path`, made when it is not there. Several processes may have it open.

    Raises:
        ConfigError: the embedded chain is not installed, or the file is none of its.
        ChainUnavailable: another process keeps the file busy.
    """
    try:
        import mycelium_localnet
        from mycelium_localnet.errors import LocalnetError
    except ImportError as error:
        raise ConfigError(
            "the embedded chain is not installed",
            hint='install it: pip install "mycelium-memory[local]"; or use another network: '
            "`[onchain] network` in mycelium.toml",
        ) from error
    try:
        localnet = mycelium_localnet.Chain.open(path)
    except LocalnetError as error:
        raise _translated(error) from error
    return EmbeddedChain(localnet, passphrase, notify=notify)


def _translated(error: Exception) -> MyceliumError:
    from mycelium_localnet.errors import ChainBusyError, ChainFileError, OptionConflictError

    message, hint = str(error), getattr(error, "hint", None)
    if isinstance(error, ChainBusyError):
        return ChainUnavailable(message, hint=hint)
    if isinstance(error, (ChainFileError, OptionConflictError)):
        return ConfigError(message, hint=hint or "check `[onchain] chain_file`, or move the file away")
    return ChainError(message, hint=hint)
