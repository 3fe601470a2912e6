"""Following a contract's events: from a chain's server into the store."""

from mycelium_indexer.ingest.ingester import Ingester

__all__ = ["Ingester"]
