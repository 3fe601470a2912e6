"""The wallet file: an account's seed, encrypted under a passphrase (formats.md section 2).

A JSON object of `public_key` (G...), `encrypted_secret`, `nonce` and `salt` (hex). The plaintext is the seed
string (S...), the cipher AES-256-GCM with a 12-byte nonce, its 16-byte tag at the end and no associated data,
the key PBKDF2-HMAC-SHA256 of the passphrase with a 16-byte salt and 600,000 iterations.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mycelium_sdk.config import DECRYPT_KEY_VARIABLE
from mycelium_sdk.errors import (
    InputError,
    PassphraseRequired,
    WalletDamaged,
    WalletError,
    WalletExists,
    WalletMismatch,
    WalletNotFound,
    WalletPermissions,
    WrongPassphrase,
)
from mycelium_sdk.files import create_private, ensure_private_folder, read_private
from mycelium_sdk.strkey import decode_seed, encode_account, encode_seed, is_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_ITERATIONS = 600_000
_KEYS = {"public_key", "encrypted_secret", "nonce", "salt"}
_SEED_LENGTH = 56
_TAG_LENGTH = 16
_NONCE_LENGTH = 12
_SALT_LENGTH = 16
_MAX_FILE_BYTES = 16 * 1024


class Secret:
    """An unlocked seed. It is shown, logged and pickled by nothing; ask for `.seed` where it is needed."""

    __slots__ = ("_seed",)

    def __init__(self, seed: str) -> None:
        self._seed = seed

    @property
    def seed(self) -> str:
        """The seed string, `S...`."""
        return self._seed

    def __repr__(self) -> str:
        return "<Secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet file that was read and found well-formed. Its address is known without a passphrase."""

    path: Path
    address: str
    _encrypted_secret: bytes = field(repr=False)
    _nonce: bytes = field(repr=False)
    _salt: bytes = field(repr=False)

    @classmethod
    def create(cls, path: str | os.PathLike[str], passphrase: str, *, seed: str | None = None) -> Wallet:
        """Make a wallet file of mode 0600 for a new account, or for the account of `seed`.

        A missing folder is made, mode 0700. Raises `WalletExists` rather than ever overwrite,
        `PassphraseRequired` for an empty passphrase, `InputError` for a malformed seed, `WalletError` if the
        path is a folder, or the file cannot be written.
        """
        path = Path(path)
        if os.path.lexists(path):
            raise already_there(path)
        secret = _passphrase_bytes(passphrase)
        private_key = os.urandom(32) if seed is None else decode_seed(seed)
        if private_key is None:
            raise InputError(
                "the seed is not valid", hint="a seed is S and 55 more characters, checksum included"
            )
        nonce, salt = os.urandom(_NONCE_LENGTH), os.urandom(_SALT_LENGTH)
        wallet = cls(
            path=path,
            address=_address_of(private_key),
            _encrypted_secret=_cipher(secret, salt).encrypt(
                nonce, encode_seed(private_key).encode("ascii"), None
            ),
            _nonce=nonce,
            _salt=salt,
        )
        wallet._write()
        return wallet

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Wallet:
        """Read a wallet file; needs no passphrase.

        Raises `WalletNotFound`, `WalletPermissions` if others than its owner may use the file,
        `WalletDamaged` if it is truncated, has a key that is unknown or missing, or a malformed value, and
        `WalletError` if it cannot be read.
        """
        path = Path(path)
        content = _parse(path, _read(path))
        address = content["public_key"]
        if not is_account(address):
            raise _damaged(path, "`public_key` is not an account address")
        return cls(
            path=path,
            address=address,
            _encrypted_secret=_hex(path, content, "encrypted_secret", _SEED_LENGTH + _TAG_LENGTH),
            _nonce=_hex(path, content, "nonce", _NONCE_LENGTH),
            _salt=_hex(path, content, "salt", _SALT_LENGTH),
        )

    def unlock(self, passphrase: str) -> Secret:
        """Decrypt the seed; takes about 0.2 s, by design of the key derivation.

        Raises `PassphraseRequired` for an empty passphrase, `WrongPassphrase` if it does not open the wallet,
        and `WalletMismatch` if the seed is not that of `address`.
        """
        from cryptography.exceptions import InvalidTag

        cipher = _cipher(_passphrase_bytes(passphrase), self._salt)
        try:
            plaintext = cipher.decrypt(self._nonce, self._encrypted_secret, None)
        except InvalidTag:
            raise WrongPassphrase(
                f"the passphrase does not open {self.path}, or the file was changed",
                hint=f"check the passphrase and {DECRYPT_KEY_VARIABLE}; it cannot be recovered",
            ) from None
        seed = plaintext.decode("ascii", "replace")
        private_key = decode_seed(seed)
        if private_key is None:
            raise _damaged(self.path, "what is encrypted in it is not a seed")
        if _address_of(private_key) != self.address:
            raise WalletMismatch(
                f"{self.path}: the encrypted key is not that of `public_key`, {self.address}",
                hint="the file was edited or mixed up; restore it from a backup",
            )
        return Secret(seed)

    def _write(self) -> None:
        content = {
            "public_key": self.address,
            "encrypted_secret": self._encrypted_secret.hex(),
            "nonce": self._nonce.hex(),
            "salt": self._salt.hex(),
        }
        if not self.path.parent.exists():
            ensure_private_folder(self.path.parent, kind=WalletError)
        try:
            create_private(
                self.path, (json.dumps(content, indent=2) + "\n").encode("ascii"), kind=WalletError
            )
        except WalletError as error:
            if isinstance(error.__cause__, FileExistsError):  # another process was faster
                raise already_there(self.path) from error
            if isinstance(error.__cause__, FileNotFoundError) and self.path.parent.is_dir():
                raise WalletError(  # as on /proc
                    f"no file can be made in {self.path.parent}", hint="choose another folder"
                ) from error
            raise


def already_there(path: Path) -> WalletError:
    """Why no wallet can be made at a path where something is."""
    if path.is_dir():
        return WalletError(f"{path} is a folder", hint=f"name a file, for example {path / 'wallet.json'}")
    return WalletExists(
        f"there is a wallet at {path} already, and it is never overwritten",
        hint="use it, choose another path with --wallet, or move it away first",
    )


def find_passphrase(argument: str | None = None, env: Mapping[str, str] | None = None) -> str | None:
    """The passphrase given, else `MYCELIUM_DECRYPT_KEY`, else None. An empty one counts as missing.

    Raises `PassphraseRequired` if the variable is not UTF-8.
    """
    if argument:
        return argument
    found = (os.environ if env is None else env).get(DECRYPT_KEY_VARIABLE)
    try:
        (found or "").encode("utf-8")
    except UnicodeEncodeError:  # not chained: the cause holds the passphrase
        raise PassphraseRequired(
            f"the environment variable {DECRYPT_KEY_VARIABLE} is not valid UTF-8",
            hint="set it to the passphrase as UTF-8 text",
        ) from None
    return found or None


def require_passphrase(argument: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """The same as `find_passphrase`, raising `PassphraseRequired` if there is none."""
    passphrase = find_passphrase(argument, env)
    if passphrase is None:
        raise _passphrase_missing()
    return passphrase


def _read(path: Path) -> bytes:
    try:
        return read_private(path, max_bytes=_MAX_FILE_BYTES, kind=WalletError, exposed=WalletPermissions)
    except WalletError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise WalletNotFound(
                f"there is no wallet at {path}",
                hint="make one with `mycelium wallet new`, or name another with --wallet or MYCELIUM_WALLET",
            ) from error
        raise


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    try:
        pairs = json.loads(data.decode("utf-8"), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):  # not chained: the cause holds the text
        raise _damaged(path, "it is cut off, or not JSON") from None
    if not isinstance(pairs, _Pairs):
        raise _damaged(path, "it is not a JSON object")
    names = [name for name, _ in pairs]
    if unknown := sorted(set(names) - _KEYS):
        # A wallet that needs more than we know, e.g. another key derivation, must not be opened wrongly.
        raise _damaged(path, f"the key {unknown[0]!r} is unknown")
    if missing := sorted(_KEYS - set(names)):
        raise _damaged(path, f"the key {missing[0]!r} is missing")
    if len(names) != len(_KEYS):
        raise _damaged(path, "a key occurs twice")
    return dict(pairs)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object as written, repeats included."""


def _hex(path: Path, content: dict[str, Any], key: str, length: int) -> bytes:
    value = content[key]
    try:
        data = bytes.fromhex(value) if isinstance(value, str) and len(value) == 2 * length else b""
    except ValueError:
        data = b""
    if len(data) != length:
        raise _damaged(path, f"`{key}` is not {length} bytes in hex")
    return data


def _cipher(passphrase: bytes, salt: bytes) -> AESGCM:
    import hashlib

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hashlib.pbkdf2_hmac("sha256", passphrase, salt, _ITERATIONS, 32))


def _address_of(private_key: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return encode_account(Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw())


def _passphrase_bytes(passphrase: str) -> bytes:
    if not passphrase:
        raise _passphrase_missing()
    try:
        return passphrase.encode("utf-8")
    except UnicodeEncodeError:  # not chained: the cause holds the passphrase
        raise InputError("the passphrase is not valid UTF-8", hint="check the terminal's encoding") from None


def _passphrase_missing() -> PassphraseRequired:
    return PassphraseRequired(
        "the wallet's passphrase is missing or empty",
        hint=f"set the environment variable {DECRYPT_KEY_VARIABLE}",
    )


def _damaged(path: Path, why: str) -> WalletDamaged:
    return WalletDamaged(
        f"{path} is not a usable wallet: {why}",
        hint="restore the file from a backup, or make a new wallet elsewhere",
    )
