"""The cheats as methods of a chain."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_localnet import options
from mycelium_localnet.cheats import clocks, dumps, interventions, named, renewal, snapshots
from mycelium_localnet.cheats.named import NamedAccount
from mycelium_localnet.errors import AccountExistsError, DumpError, InvalidRequestError
from mycelium_localnet.friendbot import STARTING_BALANCE
from mycelium_localnet.keys import account
from mycelium_localnet.opened import OpenChain
from mycelium_localnet.pending import is_waiting
from mycelium_localnet.schedule import Schedule, now
from mycelium_localnet.writer import Writer

if TYPE_CHECKING:
    import sqlite3

    from mycelium_localnet.schedule import ClosingMode

_INT64_MAX = (1 << 63) - 1


class Cheats(OpenChain):
    """Part of `Chain`. Each call is one transaction: it happens or does not, whoever is killed meanwhile.

    All raise ChainBusyError, ChainClosedError and ChainReplacedError.
    """

    def snapshot(self) -> int:
        """Remember the chain as it is now, and return the number to give to `revert`.

        It is kept in the chain file and costs next to nothing. While there is one, history does not get
        deleted for its age.
        """
        with self._writing() as connection:
            return snapshots.take(connection)

    def revert(self, snapshot: int) -> int:
        """Make everything as it was at a snapshot: entries, history, events, cursors, the clock, what is
        pending, and how ledgers close. Faults stay as they are. Returns the number of the last ledger.

        A snapshot serves once, and those made after it are gone with it. Raises InvalidRequestError when
        there is no such snapshot.
        """
        with self._writing() as connection:
            snapshots.revert(connection, snapshot)
            return _last(connection)

    def set_time(self, moment: int) -> int:
        """Set the clock to `moment` (Unix seconds) without closing a ledger, and return what it shows. It
        goes on from there, or stands there when it is frozen.

        The time bounds of clients follow the machine's clock, not this one. Raises InvalidRequestError for a
        time before that of the last ledger, or after the year 9999.
        """
        with self._writing() as connection:
            return clocks.set_time(connection, moment).now()

    def freeze_time(self, *, frozen: bool = True) -> int:
        """Stop the clock, or let it go on from where it stands, and return what it shows (Unix seconds)."""
        with self._writing() as connection:
            return clocks.freeze(connection, frozen=frozen).now()

    def set_balance(self, address: str, balance: int) -> int:
        """Give an account (G...) a balance in stroops, and make the account if it is not there. Closes a
        ledger without transactions, in whose meta nothing of it shows; returns its number.

        Raises InvalidRequestError for an address that is not a G... and a balance that is none.
        """
        if not 0 <= balance <= _INT64_MAX:
            raise InvalidRequestError(f"{balance} stroops cannot be an account's balance")
        with self._writing() as connection:
            interventions.set_balance(connection, self._network, address, balance)
            return _last(connection)

    def set_interval(self, seconds: float | None = None, *, closing: ClosingMode | None = None) -> int:
        """Have ledgers close every so many seconds (0.01 to 86,400), or with `closing` "instant" or "manual"
        as `Chain.open` says; without anything, instantly. Returns the number of the last ledger.

        What is pending when closing becomes instant is taken up in ledgers at once. Raises
        InvalidRequestError for an interval or a mode that does not exist.
        """
        schedule = Schedule.make(closing, seconds)
        with self._writing() as connection:
            options.save_schedule(connection, schedule.started(now()))
            if schedule.mode == "instant":
                self._take_up(connection)
            return _last(connection)

    def dump(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The whole chain as one file: state, history, events, cursors, what is pending, the clock and how
        ledgers close; not snapshots and faults. With a `path` it is also written there, readable by its owner
        only, in the place of what was there.

        The same chain gives the same content always, and the same bytes with the same liblzma. Raises
        DumpError when the file cannot be written.
        """
        with self._reading() as connection:
            data = dumps.write(connection)
        if path is not None:
            _write_private(Path(path), data)
        return data

    def load(self, source: bytes | str | os.PathLike[str]) -> int:
        """Put a dump (its bytes, or the path of its file) in the place of this chain, with its passphrase,
        profile and id. Snapshots and faults are gone. Returns the number of the last ledger.

        Raises DumpError for what is no dump, a later version's, a damaged one, and a file that cannot be
        read; the chain is then what it was.
        """
        data = source if isinstance(source, bytes) else _read_file(Path(source))
        with self._writing() as connection:
            dumps.read(connection, data)
            self._notice(connection)
            return _last(connection)

    def reset(self, seed: bytes | None = None) -> str:
        """Begin a new chain in the same file, and return its id. Passphrase, profile and way of closing stay;
        all else is gone, snapshots and faults included. A frozen clock stands at its beginning again, any
        other one shows the machine's time.

        `seed`: 1 to 64 bytes, the id follows from it; without one, from the old chain's seed. Raises
        InvalidRequestError.
        """
        with self._writing() as connection:
            renewal.reset(connection, seed)
            self._notice(connection)
            return self.chain_id

    def accounts(self, *, fund: bool = True) -> tuple[NamedAccount, ...]:
        """Ten accounts with names, from alice to judy, the same on every chain of this passphrase. Those that
        are not there get 10,000 XLM from the friendbot, and a ledger that holds them, unless `fund` is False.

        Raises FundingError.
        """
        with self._writing() as connection:
            found = self._named(connection)
            missing = [one for one in found if not one.funded]
            if not fund or not missing:
                return found
            for one in missing:
                with suppress(AccountExistsError):  # being funded already
                    Writer(self._network, connection).fund(self._friendbot, one.address, STARTING_BALANCE)
            self._take_up(connection)
            return self._named(connection)

    def _take_up(self, connection: sqlite3.Connection) -> None:
        """Close as many ledgers as it takes for nothing to be pending."""
        while is_waiting(connection):
            Writer(self._network, connection).close()

    def _named(self, connection: sqlite3.Connection) -> tuple[NamedAccount, ...]:
        query = "SELECT 1 FROM entries WHERE key = ?"
        keypairs = ((name, named.keypair(self.network_id, name)) for name in named.NAMES)
        return tuple(
            NamedAccount(
                name,
                keypair.public_key,
                keypair.secret,
                connection.execute(query, (account(keypair.raw_public_key()),)).fetchone() is not None,
            )
            for name, keypair in keypairs
        )


def _last(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT max(sequence) FROM ledgers").fetchone()[0])


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DumpError(f"the dump {path} cannot be read: {error.strerror}") from error


def _write_private(path: Path, data: bytes) -> None:
    """Write a file that is whole or not there, and that others cannot read."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with suppress(FileNotFoundError):
            scratch.unlink()
        descriptor = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        raise DumpError(f"the dump {path} cannot be written: {error.strerror}") from error
