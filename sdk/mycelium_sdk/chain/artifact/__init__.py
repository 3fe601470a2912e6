"""The compiled MemoryAnchor contract that this package ships, as bytes and by its hash.

The file is what `contracts/memory_anchor.py` compiles to, byte for byte; a test rebuilds and compares it.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources

__all__ = ["memory_anchor_sha256", "memory_anchor_wasm"]


@functools.cache
def memory_anchor_wasm() -> bytes:
    """The contract's WebAssembly."""
    return resources.files(__name__).joinpath("memory_anchor.wasm").read_bytes()


@functools.cache
def memory_anchor_sha256() -> bytes:
    """SHA-256 of the WebAssembly (32 bytes): the name under which a network keeps the code."""
    return hashlib.sha256(memory_anchor_wasm()).digest()
