"""An open chain file: who the chain in it is, and transactions on it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from stellar_sdk import Asset, StrKey
from stellar_sdk.xdr import TransactionResultCode

from mycelium_localnet import genesis, options, results
from mycelium_localnet.context import Network
from mycelium_localnet.envelopes import UnsupportedEnvelope, decode
from mycelium_localnet.view import ReadView
from mycelium_localnet.writer import Writer

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from stellar_sdk import Keypair

    from mycelium_localnet._native import NetworkSettings
    from mycelium_localnet.profiles import ProfileName
    from mycelium_localnet.rows import Submission
    from mycelium_localnet.storage import Storage

_NAME = "SELECT value FROM settings WHERE key IN ('chain_id', 'profile') ORDER BY key"


class OpenChain:
    """What every part of a chain's interface stands on. Attributes: see `Chain`, which is made of it."""

    path: str
    passphrase: str
    network_id: bytes
    chain_id: str
    profile: ProfileName
    settings: NetworkSettings
    friendbot: str

    _friendbot: Keypair
    _network: Network

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.path = storage.path
        # What a fault shows instead is put in their places.
        self._view: Callable[[sqlite3.Connection, int], ReadView] = ReadView
        self._intake: Callable[[sqlite3.Connection, bytes], Submission] | None = None
        with storage.read() as connection:
            self._identify(connection)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction for reading."""
        with self._storage.read() as connection:
            self._notice(connection)
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction for writing, committed at the end of the block unless that raises."""
        with self._storage.write() as connection:
            self._notice(connection)
            yield connection

    def _notice(self, connection: sqlite3.Connection) -> None:
        """See when another chain has taken this one's place in the file, here or in another process."""
        if connection.execute(_NAME).fetchall() != [(self.chain_id,), (self.profile,)]:
            self._identify(connection)

    def _take_in(self, connection: sqlite3.Connection, envelope: bytes) -> Submission:
        """Hand in a transaction, within a transaction for writing. Raises MalformedEnvelopeError."""
        if self._intake is not None:
            return self._intake(connection, envelope)
        decoded = decode(envelope, self.network_id)
        writer = Writer(self._network, connection)
        if isinstance(decoded, UnsupportedEnvelope):
            return writer.refuse(decoded.hash, results.refused(TransactionResultCode.txNOT_SUPPORTED), 0)
        return writer.submit(decoded)

    def _identify(self, connection: sqlite3.Connection) -> None:
        identity = options.load_identity(connection)
        settings = genesis.load_settings(connection)
        self.passphrase, self.profile = identity.passphrase, identity.profile
        self.network_id, self.chain_id = identity.network_id, identity.chain_id.hex()
        self._friendbot = genesis.friendbot_keypair(self.network_id)
        self.friendbot = self._friendbot.public_key
        native_contract = StrKey.decode_contract(Asset.native().contract_id(self.passphrase))
        self._network = Network(self.network_id, settings, native_contract)
        self.settings = settings

    def close(self) -> None:
        """Release the file. Idempotent; other chains on the file go on."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
