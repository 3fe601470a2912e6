"""The last anchors of every owner on every chain, for machines that keep nothing themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_sdk.facts import ChainKey, LastAnchor

if TYPE_CHECKING:
    from mycelium_sdk.backends.postgres.connections import Connections

_RECORD = """
INSERT INTO anchors AS known(
    network, contract, owner, chain_id, version, root, uri, change_counter, anchored_at)
VALUES (%s, %s, %s, %s, %s, %b, %b, %s, %s)
ON CONFLICT (owner, network, contract, chain_id) DO UPDATE
SET version = excluded.version, root = excluded.root, uri = excluded.uri,
    change_counter = excluded.change_counter, anchored_at = excluded.anchored_at,
    recorded = DEFAULT
WHERE excluded.version >= known.version
"""


class SharedAnchors:
    """Serves `facts.LastAnchors`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def newest_chain(self, network: str, contract: str, owner: str) -> ChainKey | None:
        """See `LastAnchors.newest_chain`."""
        rows = self._connections.ask(
            "SELECT chain_id FROM anchors WHERE network = %s AND contract = %s AND owner = %s"
            " ORDER BY recorded DESC LIMIT 1",
            (network, contract, owner),
        )
        return ChainKey(network, contract, owner, rows[0][0]) if rows else None

    def last_anchor(self, key: ChainKey) -> LastAnchor | None:
        """See `LastAnchors.last_anchor`."""
        rows = self._connections.ask(
            "SELECT version, root, uri, change_counter, anchored_at FROM anchors"
            " WHERE network = %s AND contract = %s AND owner = %s AND chain_id = %s",
            key.values,
        )
        if not rows:
            return None
        version, root, uri, changes, anchored_at = rows[0]
        text = None if uri is None else uri.decode("utf-8", "replace")
        return LastAnchor(version, root, text, changes, anchored_at)

    def record_last(self, key: ChainKey, anchor: LastAnchor) -> None:
        """See `LastAnchors.record_last`."""
        uri = None if anchor.uri is None else anchor.uri.encode("utf-8")
        values = (anchor.version, anchor.root, uri, anchor.change_counter, anchor.anchored_at)
        self._connections.run(_RECORD, (*key.values, *values))

    def forget_last(self, network: str, contract: str, owner: str) -> None:
        """See `LastAnchors.forget_last`."""
        self._connections.run(
            "DELETE FROM anchors WHERE network = %s AND contract = %s AND owner = %s",
            (network, contract, owner),
        )
