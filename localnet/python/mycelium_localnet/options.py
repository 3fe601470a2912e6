"""The settings table: what a chain was made with, and how it closes ledgers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from mycelium_localnet.errors import InvalidRequestError, OptionConflictError
from mycelium_localnet.genesis import Identity

if TYPE_CHECKING:
    import sqlite3

    from mycelium_localnet.clock import Clock, ClockMode
    from mycelium_localnet.profiles import ProfileName

ClosingMode: TypeAlias = Literal["instant", "manual"]


@dataclass(frozen=True)
class Requested:
    """The options that `Chain.open` was given; None where it was given none."""

    passphrase: str | None
    profile: ProfileName | None
    seed: bytes | None
    clock: ClockMode | None
    closing: ClosingMode | None

    def check(self) -> None:
        """Raises InvalidRequestError for what no chain can be made with."""
        self.identity()
        for name, value, known in (
            ("clock", self.clock, ("wall", "frozen")),
            ("closing", self.closing, ("instant", "manual")),
        ):
            if value is not None and value not in known:
                raise InvalidRequestError(f"{name} is {' or '.join(known)}, not {value!r}")

    def identity(self) -> Identity:
        """The identity of a chain made with these. Raises InvalidRequestError."""
        return Identity.make(self.passphrase, self.profile, self.seed)

    def check_against(self, settings: dict[str, str], path: str) -> None:
        """Raises OptionConflictError if the chain that is there was made with other options."""
        wanted = {
            "passphrase": self.passphrase,
            "profile": self.profile,
            "seed": None if self.seed is None else self.seed.hex(),
            "clock": self.clock,
            "closing": self.closing,
        }
        for name, value in wanted.items():
            if value is not None and value != settings[name]:
                found = "another one" if name == "seed" else repr(settings[name])
                raise OptionConflictError(
                    f"the chain at {path} has {found} as its {name}",
                    hint=f"leave {name} out to use the chain as it is, or name another file",
                )


def save(connection: sqlite3.Connection, identity: Identity, clock: Clock, closing: ClosingMode) -> None:
    """Write the settings of a new chain, within the caller's transaction."""
    settings = {
        "passphrase": identity.passphrase,
        "profile": identity.profile,
        "seed": identity.seed,
        "chain_id": identity.chain_id.hex(),
        "closing": closing,
        **clock.to_settings(),
    }
    connection.executemany("INSERT INTO settings (key, value) VALUES (?, ?)", settings.items())


def load(connection: sqlite3.Connection) -> dict[str, str]:
    """All settings."""
    return dict(connection.execute("SELECT key, value FROM settings"))


def load_identity(connection: sqlite3.Connection) -> Identity:
    """Who the chain is."""
    settings = load(connection)
    return Identity(settings["passphrase"], cast("ProfileName", settings["profile"]), settings["seed"])
