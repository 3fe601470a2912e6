"""Opens the embedded chain for the network `local`: the same chain client, over a chain in this process."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from stellar_sdk.client.base_sync_client import BaseSyncClient

from mycelium_sdk.chain.deployment import ensure_funded
from mycelium_sdk.chain.fees import DEFAULT_MAX_FEE
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.errors import ChainError, ChainUnavailable, ConfigError, MyceliumError
from mycelium_sdk.installing import install_command

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from stellar_sdk import Keypair
    from stellar_sdk.client.response import Response

    from mycelium_localnet import Chain
    from mycelium_sdk.chain.base import BeforeSend, Receipt, Work
    from mycelium_sdk.chain.deployment import Notify
    from mycelium_sdk.retry import RetryPolicy

__all__ = ["EmbeddedChain", "open_embedded"]

_left_to_parents: list[Chain] = []
"""In a forked child: the chains of its parent, which are not the child's to close."""


class EmbeddedChain(RpcChain):
    """A `ChainClient` over an embedded chain, which it closes with itself. `localnet` is that chain.

    The account that signs a transaction is created and funded when it is not there, which `notify` is told.
    """

    lags = False  # every answer comes from one state of one file

    def __init__(
        self,
        localnet: Chain,
        passphrase: str,
        *,
        notify: Notify | None = None,
        policy: RetryPolicy | None = None,
        max_fee: int = DEFAULT_MAX_FEE,
    ) -> None:
        from mycelium_localnet import IN_PROCESS_URL

        self._door = _Door(localnet)
        super().__init__(IN_PROCESS_URL, passphrase, client=self._door, policy=policy, max_fee=max_fee)
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
        self._door.close_chain()
        self.localnet.close()


class _Door(BaseSyncClient):
    """The way into the chain. What no other attempt mends (a chain file that was taken away, a closed chain)
    is raised by it as it is, and becomes an error of this package's tree here. A forked child opens the
    chain's file anew, since the chain that it inherited is its parent's."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._enter()

    def _enter(self) -> None:
        from mycelium_localnet import InProcessClient

        self._process = os.getpid()
        self._client: BaseSyncClient = InProcessClient(self._chain)

    @property
    def _inner(self) -> BaseSyncClient:
        if self._process != os.getpid():
            from mycelium_localnet import Chain

            _left_to_parents.append(self._chain)
            self._chain = Chain.open(self._chain.path)
            self._enter()
        return self._client

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        """Carry a request in."""
        with _in_our_words():
            return self._inner.post(url, data=data, json_data=json_data)

    def get(
        self, url: str, params: dict[str, str] | None = None, max_content_size: int | None = None
    ) -> Response:
        """Ask the friendbot."""
        with _in_our_words():
            return self._inner.get(url, params=params, max_content_size=max_content_size)

    def stream(self, url: str, params: dict[str, str] | None = None) -> Generator[dict[str, Any], None, None]:
        """There are no streams; whatever the wrapped client makes of it."""
        return self._inner.stream(url, params)

    def close_chain(self) -> None:
        """Close the chain that is used in this process."""
        self._chain.close()

    def close(self) -> None:
        """Nothing to release: the chain is closed by whoever opened it."""


@contextlib.contextmanager
def _in_our_words() -> Iterator[None]:
    from mycelium_localnet.errors import LocalnetError

    try:
        yield
    except LocalnetError as error:
        raise _translated(error) from error


def open_embedded(
    path: Path, passphrase: str, *, notify: Notify | None = None, max_fee: int = DEFAULT_MAX_FEE
) -> EmbeddedChain:
    """Open the chain file at `path`, made when it is not there. Several processes may have it open.

    `max_fee`: the most that one transaction may cost, in stroops.

    Raises:
        ConfigError: the embedded chain is not installed, or the file is none of its.
        ChainError: the file is damaged, or cannot be made, read or written.
        ChainUnavailable: another process keeps the file busy.
    """
    try:
        import mycelium_localnet
    except ImportError as error:
        raise ConfigError(
            "the embedded chain is not installed",
            hint=f"install it: {install_command('local')}; or use another network: "
            "`[onchain] network` in mycelium.toml",
        ) from error
    with _in_our_words():
        localnet = mycelium_localnet.Chain.open(path)
    return EmbeddedChain(localnet, passphrase, notify=notify, max_fee=max_fee)


def _translated(error: Exception) -> MyceliumError:
    from mycelium_localnet.errors import (
        ChainBusyError,
        ChainFileError,
        OptionConflictError,
        UnusableFileError,
    )

    message, hint = str(error), getattr(error, "hint", None)
    if isinstance(error, ChainBusyError):
        return ChainUnavailable(message, hint=hint)
    if isinstance(error, UnusableFileError):  # the right file was named
        return ChainError(message, hint=hint)
    if isinstance(error, (ChainFileError, OptionConflictError)):
        return ConfigError(message, hint=hint or "check `[onchain] chain_file`")
    return ChainError(message, hint=hint)
