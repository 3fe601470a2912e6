"""Secrets that are planted in the tests, to see where they come out: see `tests.canaries.watch`."""

from __future__ import annotations

from mycelium_sdk.strkey import encode_seed

__all__ = ["PASSPHRASE", "SEED", "TEXT"]

PASSPHRASE = "wren-5b90d3: correct horse battery staple"
"""A wallet's passphrase."""

TEXT = "kestrel-7c41e9 nests in the old bell tower, behind the fourth louvre"
"""What somebody remembers."""

SEED = encode_seed(b"owl-e2816a, of the canaries here")
"""The seed of a wallet's account."""
