"""Where MemoryAnchor contracts are: on any local chain, and the well-known deployments of public networks.

Loads no Stellar library, so that a command which must not ask the chain can still name the contract.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from mycelium_sdk.strkey import decode_account

__all__ = ["LOCAL_DEPLOYER", "LOCAL_SALT", "WELL_KNOWN", "local_contract_id", "local_deployer_seed"]

WELL_KNOWN = {
    "testnet": "CAC27VKJEPDJJNI36NP7D7VH6WCHT6N5EITKSKPZIQNWA2VPEPBIXJSB",
    "mainnet": "CDFXP42NITRLDGYUMJ5OT63EVWBROJTCXQR64GUSDWHY2LH3AQM2TXYP",
}
"""Deployments of the older contract, by network. Never chosen silently."""

LOCAL_DEPLOYER = "GCJD6OHZFHORPZSDYD55ZTBU5LECVDKC4A5J2D37LHXXZGCY4ZMTDXMI"
LOCAL_SALT = hashlib.sha256(b"mycelium-memory: MemoryAnchor on local chains").digest()

_CONTRACT = 2 << 3  # SEP-23: the version byte of "C" addresses
_ENVELOPE_TYPE_CONTRACT_ID = 8
_FROM_ADDRESS = _ACCOUNT_ADDRESS = _ED25519_KEY = 0


def local_deployer_seed() -> bytes:
    """The 32-byte seed of `LOCAL_DEPLOYER`.

    Anybody knows it, as anybody knows the local friendbot's. It makes the address of the contract on a local
    chain the same for everyone and has no other use: the contract has no administrator.
    """
    return hashlib.sha256(b"mycelium-memory: deployer on local chains").digest()


def local_contract_id(passphrase: str) -> str:
    """The address of the MemoryAnchor contract on a local chain: it follows from the network's passphrase.

    SHA-256 of the XDR of a HashIDPreimage (CAP-46-02): network id, then the deployer's address and the salt.
    """
    numbers = (_FROM_ADDRESS, _ACCOUNT_ADDRESS, _ED25519_KEY)
    preimage = (
        _ENVELOPE_TYPE_CONTRACT_ID.to_bytes(4, "big")
        + hashlib.sha256(passphrase.encode("utf-8")).digest()
        + b"".join(number.to_bytes(4, "big") for number in numbers)
        + decode_account(LOCAL_DEPLOYER)
        + LOCAL_SALT
    )
    body = bytes([_CONTRACT]) + hashlib.sha256(preimage).digest()
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode("ascii")
