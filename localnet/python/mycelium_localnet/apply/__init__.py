"""Applying a transaction to the ledger's state, one module for each kind of operation."""
