"""The settings table: what a chain was made with, and how it closes ledgers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mycelium_localnet.errors import InvalidRequestError, OptionConflictError
from mycelium_localnet.genesis import Identity
from mycelium_localnet.schedule import KEYS, Schedule

if TYPE_CHECKING:
    import sqlite3

    from mycelium_localnet.clock import Clock, ClockMode
    from mycelium_localnet.profiles import ProfileName
    from mycelium_localnet.schedule import ClosingMode


@dataclass(frozen=True)
class Requested:
    """The options that `Chain.open` was given; None where it was given none."""

    passphrase: str | None
    profile: ProfileName | None
    seed: bytes | None
    clock: ClockMode | None
    closing: ClosingMode | None
    interval: float | None

    def check(self) -> None:
        """Raises InvalidRequestError for what no chain can be made with."""
        self.identity()
        self.schedule()
        if self.clock not in (None, "wall", "frozen"):
            raise InvalidRequestError(f"clock is wall or frozen, not {self.clock!r}")

    def identity(self) -> Identity:
        """The identity of a chain made with these. Raises InvalidRequestError."""
        return Identity.make(self.passphrase, self.profile, self.seed)

    def schedule(self) -> Schedule:
        """When a chain made with these closes ledgers. Raises InvalidRequestError."""
        return Schedule.make(self.closing, self.interval)

    def check_against(self, settings: dict[str, str], path: str) -> None:
        """Raises OptionConflictError if the chain that is there was made with other options."""
        wanted = {
            "passphrase": self.passphrase,
            "profile": self.profile,
            "seed": None if self.seed is None else self.seed.hex(),
            "clock": self.clock,
        }
        if self.closing is not None or self.interval is not None:
            wanted["closing"] = self.schedule().mode
        if self.interval is not None:
            wanted["interval"] = str(self.schedule().interval)
        for name, value in wanted.items():
            found = settings.get(name)
            if value is not None and value != found:
                option = "interval" if name == "closing" and self.closing is None else name
                raise OptionConflictError(
                    f"the chain at {path} has {_shown(name, found)} as its {name}",
                    hint=f"leave {option} out to use the chain as it is, or name another file",
                )


def _shown(name: str, value: str | None) -> str:
    if name == "seed":
        return "another one"
    return f"{int(value) / 1000:g} seconds" if name == "interval" and value is not None else repr(value)


def save(connection: sqlite3.Connection, identity: Identity, clock: Clock, schedule: Schedule) -> None:
    """Write the settings of a new chain, within the caller's transaction."""
    settings = {
        "passphrase": identity.passphrase,
        "profile": identity.profile,
        "seed": identity.seed,
        "chain_id": identity.chain_id.hex(),
        **schedule.to_settings(),
        **clock.to_settings(),
    }
    connection.executemany("INSERT INTO settings (key, value) VALUES (?, ?)", settings.items())


def load(connection: sqlite3.Connection) -> dict[str, str]:
    """All settings."""
    return dict(connection.execute("SELECT key, value FROM settings"))


def save_schedule(connection: sqlite3.Connection, schedule: Schedule) -> None:
    """Change when ledgers close, within the caller's transaction."""
    connection.executemany("DELETE FROM settings WHERE key = ?", [(key,) for key in KEYS])
    connection.executemany("INSERT INTO settings (key, value) VALUES (?, ?)", schedule.to_settings().items())


def load_schedule(connection: sqlite3.Connection) -> Schedule:
    """When ledgers close."""
    query = "SELECT key, value FROM settings WHERE key IN (?, ?, ?)"
    return Schedule.from_settings(dict(connection.execute(query, KEYS)))


def load_identity(connection: sqlite3.Connection) -> Identity:
    """Who the chain is."""
    settings = load(connection)
    return Identity(settings["passphrase"], cast("ProfileName", settings["profile"]), settings["seed"])
