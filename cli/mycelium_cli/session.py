"""What a command works with: the configuration under its options, the wallet, a memory or a context.

Imports at the point of need, so that a command pays for what it uses.
"""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING

import click

from mycelium_cli.options import SETTINGS, Given
from mycelium_cli.output import report_progress, to_stderr, to_stdout, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.config import Configuration
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.agent_memory import AgentMemory
    from mycelium_sdk.wallet import Wallet

__all__ = ["Session", "current_session", "require_embedded_chain"]


def current_session() -> Session:
    """The session of the command that is running."""
    return Session(click.get_current_context().ensure_object(Given))


def require_embedded_chain() -> None:
    """Raise ConfigError unless the embedded chain is installed. Does not load it."""
    import importlib.util

    from mycelium_sdk.errors import ConfigError
    from mycelium_sdk.installing import install_command

    if importlib.util.find_spec("mycelium_localnet") is None:
        raise ConfigError(
            "the embedded chain is not installed", hint=f"install it: {install_command('local')}"
        )


class Session:
    """One run of a command."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self._passphrase: str | None = None

    @functools.cached_property
    def configuration(self) -> Configuration:
        """`mycelium.toml`, the environment and the options. Raises ConfigError, UsageError."""
        from mycelium_sdk.config import load_configuration
        from mycelium_sdk.errors import UsageError
        from mycelium_sdk.home import HOME_VARIABLE

        env = dict(os.environ)
        if self.given.home is not None:
            if not self.given.home.strip():
                raise UsageError("--home is empty", hint="give the path of a folder")
            env[HOME_VARIABLE] = self.given.home
        return load_configuration(env=env, overrides=self.given.overrides, option_names=SETTINGS)

    def wallet(self, *, make: bool = False) -> Wallet:
        """The configured wallet; with `make`, on the embedded chain, a missing one is made.

        Raises:
            WalletError: there is none, or it cannot be used.
        """
        from mycelium_sdk.errors import WalletExists, WalletNotFound
        from mycelium_sdk.wallet import Wallet

        path = self.configuration.wallet.path
        try:
            return Wallet.load(path)
        except WalletNotFound:
            if not make or self.configuration.onchain.network != "local":
                raise
        from mycelium_cli.passphrase import new_passphrase

        to_stderr(f"note: there is no wallet yet; one will be made at {path}")
        self._passphrase = new_passphrase()
        try:
            wallet = Wallet.create(path, self._passphrase)
        except WalletExists:  # another process was faster
            return Wallet.load(path)
        to_stderr(f"note: its account is {wallet.address}; keep file and passphrase, nobody can replace them")
        return wallet

    @contextlib.contextmanager
    def context(self, *, make_wallet: bool = False, signs: bool = False) -> Iterator[AgentContext]:
        """Whose memory and which chain. With `signs` the passphrase is found, or asked for, first of all."""
        from mycelium_sdk.context import AgentContext

        self.wallet(make=make_wallet)
        if signs and self._passphrase is None:
            from mycelium_cli.passphrase import existing_passphrase

            self._passphrase = existing_passphrase()
        with AgentContext(
            passphrase=self._passphrase, configuration=self.configuration, notify=_say
        ) as context:
            yield context

    @contextlib.contextmanager
    def memory(self, *, make_wallet: bool = False, signs: bool = False) -> Iterator[AgentMemory]:
        """The configured memory; see `context`."""
        from mycelium_sdk.memory.agent_memory import AgentMemory

        takes_progress = self.configuration.memory.backend in {"auto", "local", "postgres"}
        arguments = {"progress": report_progress} if takes_progress else None
        with (
            self.context(make_wallet=make_wallet, signs=signs) as context,
            AgentMemory(context, backend_kwargs=arguments) as memory,
        ):
            yield memory

    def result(self, document: object, *lines: str) -> None:
        """Write what the command found: the document with `--json`, else the lines."""
        if self.given.json:
            write_json(document)
        else:
            for line in lines:
                to_stdout(line)


def _say(sentence: str) -> None:
    to_stderr(f"note: {sentence}")
