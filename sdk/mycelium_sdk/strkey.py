"""Stellar addresses (strkeys) of accounts and contracts, and seeds, without loading a Stellar library.

SEP-23: base32 of a version byte, 32 bytes of payload and a CRC16-XMODEM of both (low byte first), 56
characters, no padding. 35 bytes are exactly 56 characters of 5 bits, so every address has one encoding;
what base64 libraries forgive (lower case, padding, white space) is refused here.
"""

from __future__ import annotations

import base64
import binascii
import re

from mycelium_sdk.errors import InputError

_ACCOUNT = 6 << 3  # "G"
_CONTRACT = 2 << 3  # "C"
_SEED = 18 << 3  # "S"
_SHAPE = re.compile(r"[A-Z2-7]{56}", re.ASCII)


def is_account(address: object) -> bool:
    """True for a valid account address (`G...`); any other value, of any type, is False."""
    return _payload(address, _ACCOUNT) is not None


def is_contract(address: object) -> bool:
    """True for a valid contract address (`C...`); any other value, of any type, is False."""
    return _payload(address, _CONTRACT) is not None


def check_account(address: object) -> str:
    """Return the address unchanged, or raise `InputError`, without repeating it: it may be a seed."""
    if isinstance(address, str) and is_account(address):
        return address
    raise InputError(
        f"not an account address{_guess(address)}", hint="an account address is G and 55 more characters"
    )


def check_contract(address: object) -> str:
    """Return the address unchanged, or raise `InputError`."""
    if isinstance(address, str) and is_contract(address):
        return address
    raise InputError(
        f"not a contract address{_guess(address)}", hint="a contract address is C and 55 more characters"
    )


def decode_account(address: str) -> bytes:
    """The 32 bytes of the account's ed25519 public key. Raises `InputError`."""
    payload = _payload(address, _ACCOUNT)
    if payload is None:
        check_account(address)
        raise AssertionError("unreachable")
    return payload


def encode_account(public_key: bytes) -> str:
    """The address of a 32-byte ed25519 public key. Raises `InputError` for another length."""
    if len(public_key) != 32:
        raise InputError(f"an account's public key has 32 bytes, not {len(public_key)}")
    return _encode(_ACCOUNT, public_key)


def decode_contract(address: str) -> bytes:
    """The 32 bytes of a contract's id. Raises `InputError`."""
    payload = _payload(address, _CONTRACT)
    if payload is None:
        check_contract(address)
        raise AssertionError("unreachable")
    return payload


def encode_contract(identity: bytes) -> str:
    """The address of a contract by the 32 bytes of its id. Raises `InputError` for another length."""
    if len(identity) != 32:
        raise InputError(f"a contract's id has 32 bytes, not {len(identity)}")
    return _encode(_CONTRACT, identity)


def decode_seed(seed: object) -> bytes | None:
    """The 32 bytes of an ed25519 private key written as a seed (`S...`); None for anything else."""
    return _payload(seed, _SEED)


def encode_seed(private_key: bytes) -> str:
    """The seed that writes a 32-byte ed25519 private key. Raises `InputError` for another length."""
    if len(private_key) != 32:
        raise InputError(f"a private key has 32 bytes, not {len(private_key)}")
    return _encode(_SEED, private_key)


def _encode(version: int, payload: bytes) -> str:
    body = bytes([version]) + payload
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode("ascii")


def _payload(address: object, version: int) -> bytes | None:
    if not isinstance(address, str) or not _SHAPE.fullmatch(address):
        return None
    raw = base64.b32decode(address)
    body, checksum = raw[:-2], raw[-2:]
    if body[0] != version or binascii.crc_hqx(body, 0).to_bytes(2, "little") != checksum:
        return None
    return body[1:]


def _guess(address: object) -> str:
    if not isinstance(address, str):
        return f": {type(address).__name__} instead of a string"
    if len(address) == 56 and address.startswith("S"):
        return ": it looks like a secret seed; keep it private"
    if len(address) != 56:
        return f": {len(address)} characters instead of 56"
    if not address.startswith(("G", "C")):
        return ": another kind of address"
    return ": the kind, an illegal character or the checksum is wrong"
