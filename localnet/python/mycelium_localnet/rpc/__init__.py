"""Stellar RPC over a chain: one module per subject, behind the dispatcher that every door uses."""
