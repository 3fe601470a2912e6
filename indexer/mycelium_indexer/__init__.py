"""The indexer: every owner's latest anchor and history, from a chain's events, with what proves them."""
