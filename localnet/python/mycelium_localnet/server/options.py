"""What a server is started with, and what it says of itself when it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mycelium_localnet.errors import InvalidRequestError
from mycelium_localnet.ledger import Chain
from mycelium_localnet.storage import MEMORY

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_localnet.clock import ClockMode
    from mycelium_localnet.profiles import ProfileName

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8000

_WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where to listen, and which chain to serve.

    `host`: a name or an address; `port`: 0 takes a free one; `state`: the chain file, None for a chain that
    is gone when the server ends. `interval` (seconds), `profile`, `clock` and `seed` mean what they mean for
    `Chain.open`; without an interval a ledger closes for each transaction.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    state: Path | None = None
    interval: float | None = None
    profile: ProfileName | None = None
    clock: ClockMode | None = None
    seed: bytes | None = None

    def open_chain(self) -> Chain:
        """The chain, made when it is not there. Raises what `Chain.open` raises."""
        return Chain.open(
            MEMORY if self.state is None else self.state,
            interval=self.interval,
            profile=self.profile,
            clock=self.clock,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that takes requests. `origin`: `http://host:port`, under which clients of this machine reach
    it."""

    origin: str
    passphrase: str
    chain_id: str
    state: str | None

    @property
    def rpc_url(self) -> str:
        return f"{self.origin}/rpc"

    @property
    def friendbot_url(self) -> str:
        return f"{self.origin}/friendbot"


def origin_of(host: str, port: int) -> str:
    """The origin of a server that listens on `host`, which may be a wildcard, and `port`."""
    name = "localhost" if host in _WILDCARDS else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def parse_seed(text: str) -> bytes:
    """The bytes of a seed in hex. Raises InvalidRequestError."""
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise InvalidRequestError(
            "the seed is not hexadecimal", hint="give an even number of the digits 0-9 and a-f"
        ) from error
