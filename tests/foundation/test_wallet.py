"""Wallet files: the frozen format, and every way in which one is refused."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import stat
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from stellar_sdk import Keypair

from mycelium_sdk import wallet as module
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
from mycelium_sdk.wallet import Wallet, find_passphrase, require_passphrase

if TYPE_CHECKING:
    from pathlib import Path

PASSPHRASE = "correct h\u00f6rse \U0001f40e"
SEED = Keypair.from_raw_ed25519_seed(bytes(range(32))).secret
ADDRESS = Keypair.from_raw_ed25519_seed(bytes(range(32))).public_key
NONCE, SALT = bytes(range(12)), bytes(range(16))


def _by_hand(plaintext: str = SEED, address: str = ADDRESS) -> dict[str, Any]:
    """A wallet made from the description of the format alone (formats.md section 2)."""
    key = hashlib.pbkdf2_hmac("sha256", PASSPHRASE.encode("utf-8"), SALT, 600_000, dklen=32)
    encrypted = AESGCM(key).encrypt(NONCE, plaintext.encode("ascii"), None)
    return {
        "public_key": address,
        "encrypted_secret": encrypted.hex(),
        "nonce": NONCE.hex(),
        "salt": SALT.hex(),
    }


@pytest.fixture(scope="session")
def content() -> dict[str, Any]:
    """The members of a good wallet file."""
    return _by_hand()


def _put(path: Path, content: object) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(0o600)
    return path


def test_a_wallet_made_by_the_description_loads(tmp_path: Path, content: dict[str, Any]) -> None:
    wallet = Wallet.load(_put(tmp_path / "wallet.json", content))
    assert wallet.address == ADDRESS
    assert wallet.unlock(PASSPHRASE).seed == SEED


def test_layout_of_the_json_and_case_of_the_hex_do_not_matter(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    upper = {key: value.upper() for key, value in reversed(content.items())}
    wallet = Wallet.load(_put(tmp_path / "wallet.json", json.dumps(upper, indent=8).encode() + b"\n\n"))
    assert wallet.unlock(PASSPHRASE).seed == SEED


def test_a_wallet_made_here_opens_by_the_description(tmp_path: Path) -> None:
    path = tmp_path / "deep" / ".mycelium" / "wallet.json"
    wallet = Wallet.create(path, PASSPHRASE)
    assert {stat.S_IMODE(part.stat().st_mode) for part in (path.parent, path.parent.parent)} == {0o700}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["wallet.json"]  # noqa: PTH208 - names
    content = json.loads(path.read_text("ascii"))
    assert set(content) == {"public_key", "encrypted_secret", "nonce", "salt"}
    encrypted, nonce, salt = (bytes.fromhex(content[key]) for key in ("encrypted_secret", "nonce", "salt"))
    assert (len(encrypted), len(nonce), len(salt)) == (72, 12, 16)
    key = hashlib.pbkdf2_hmac("sha256", PASSPHRASE.encode("utf-8"), salt, 600_000)
    seed = AESGCM(key).decrypt(nonce, encrypted, None).decode("ascii")
    assert Keypair.from_secret(seed).public_key == content["public_key"] == wallet.address
    assert Wallet.load(path) == wallet
    assert wallet.unlock(PASSPHRASE).seed == seed


def test_a_wallet_can_be_made_for_an_existing_account(tmp_path: Path) -> None:
    wallet = Wallet.create(tmp_path / "wallet.json", PASSPHRASE, seed=SEED)
    assert wallet.address == ADDRESS
    assert wallet.unlock(PASSPHRASE).seed == SEED


def test_every_wallet_is_another_account_with_its_own_salt(tmp_path: Path) -> None:
    one, two = (Wallet.create(tmp_path / name, PASSPHRASE) for name in ("one", "two"))
    assert one.address != two.address
    assert one._salt != two._salt
    assert one._nonce != two._nonce


@pytest.mark.parametrize("seed", ["", SEED[:-1], SEED.lower(), ADDRESS, "S" + "A" * 55])
def test_a_malformed_seed_is_refused_and_not_repeated(tmp_path: Path, seed: str) -> None:
    with pytest.raises(InputError) as caught:
        Wallet.create(tmp_path / "wallet.json", PASSPHRASE, seed=seed)
    assert not seed or seed not in f"{caught.value!r} {caught.value.hint}"
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _put(tmp_path / "wallet.json", b"precious")
    with pytest.raises(WalletExists, match="never overwritten") as caught:
        Wallet.create(path, PASSPHRASE)
    assert caught.value.hint
    # A file that appears after the first look is not overwritten either.
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    with pytest.raises(WalletExists):
        Wallet.create(path, PASSPHRASE)
    assert path.read_bytes() == b"precious"
    assert [entry.name for entry in tmp_path.iterdir()] == ["wallet.json"]


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    path = tmp_path / "wallet.json"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WalletExists):
        Wallet.create(path, PASSPHRASE)
    assert not (tmp_path / "elsewhere").exists()


def test_a_wallet_that_cannot_be_written_is_a_wallet_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WalletError, match="cannot create"):
        Wallet.create(tmp_path / "file" / "wallet.json", PASSPHRASE)


def test_a_wrong_passphrase_is_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    wallet = Wallet.load(_put(tmp_path / "wallet.json", content))
    with pytest.raises(WrongPassphrase, match="does not open") as caught:
        wallet.unlock("wrong horse")
    assert "MYCELIUM_DECRYPT_KEY" in (caught.value.hint or "")
    assert "wrong horse" not in f"{caught.value!r} {caught.value.hint} {caught.value.__cause__}"


@pytest.mark.parametrize("key", ["encrypted_secret", "nonce", "salt"])
def test_a_changed_value_does_not_open(tmp_path: Path, content: dict[str, Any], key: str) -> None:
    data = bytearray.fromhex(content[key])
    data[0] ^= 1
    wallet = Wallet.load(_put(tmp_path / "wallet.json", content | {key: data.hex()}))
    with pytest.raises(WrongPassphrase):
        wallet.unlock(PASSPHRASE)


def test_another_public_key_is_noticed(tmp_path: Path, content: dict[str, Any], owner: str) -> None:
    wallet = Wallet.load(_put(tmp_path / "wallet.json", content | {"public_key": owner}))
    assert wallet.address == owner
    with pytest.raises(WalletMismatch, match="not that of `public_key`") as caught:
        wallet.unlock(PASSPHRASE)
    assert SEED not in f"{caught.value!r} {caught.value.hint}"


def test_what_is_encrypted_must_be_a_seed(tmp_path: Path) -> None:
    wallet = Wallet.load(_put(tmp_path / "wallet.json", _by_hand("T" + SEED[1:])))
    with pytest.raises(WalletDamaged, match="is not a seed"):
        wallet.unlock(PASSPHRASE)


def test_every_truncation_is_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    whole = json.dumps(content).encode()
    path = tmp_path / "wallet.json"
    for end in range(len(whole)):
        with pytest.raises(WalletDamaged, match="cut off, or not JSON") as caught:
            Wallet.load(_put(path, whole[:end]))
        assert "backup" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kdf": "argon2id"}, "the key 'kdf' is unknown"),
        ({"version": 1}, "the key 'version' is unknown"),
        ({"salt": None}, "`salt` is not 16 bytes in hex"),
        ({"salt": ""}, "`salt` is not 16 bytes in hex"),
        ({"salt": "00" * 15}, "`salt` is not 16 bytes in hex"),
        ({"salt": "0" * 30 + "zz"}, "`salt` is not 16 bytes in hex"),
        ({"salt": "00 " * 10 + "00"}, "`salt` is not 16 bytes in hex"),
        ({"nonce": "00" * 16}, "`nonce` is not 12 bytes in hex"),
        ({"nonce": 7}, "`nonce` is not 12 bytes in hex"),
        ({"encrypted_secret": "00" * 56}, "`encrypted_secret` is not 72 bytes in hex"),
        ({"public_key": "G" + "A" * 55}, "`public_key` is not an account address"),
        ({"public_key": SEED}, "`public_key` is not an account address"),
        ({"public_key": None}, "`public_key` is not an account address"),
    ],
)
def test_what_we_do_not_know_is_refused_before_anything_is_derived(
    tmp_path: Path, content: dict[str, Any], change: dict[str, Any], says: str
) -> None:
    with pytest.raises(WalletDamaged, match=says) as caught:
        Wallet.load(_put(tmp_path / "wallet.json", content | change))
    assert SEED not in f"{caught.value!r}"


@pytest.mark.parametrize("key", ["public_key", "encrypted_secret", "nonce", "salt"])
def test_a_missing_key_is_named(tmp_path: Path, content: dict[str, Any], key: str) -> None:
    rest = {name: value for name, value in content.items() if name != key}
    with pytest.raises(WalletDamaged, match=f"the key '{key}' is missing"):
        Wallet.load(_put(tmp_path / "wallet.json", rest))


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"7", b'"x"', b"null", b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 16_000, b"1" * 10_000],
    ids=lambda data: repr(data[:5]),
)
def test_what_is_not_a_json_object_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(WalletDamaged):
        Wallet.load(_put(tmp_path / "wallet.json", data))


def test_a_repeated_key_is_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content)[:-1] + f', "public_key": "{ADDRESS}"}}'
    with pytest.raises(WalletDamaged, match="occurs twice"):
        Wallet.load(_put(tmp_path / "wallet.json", text.encode()))


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WalletError, match="larger than"):
        Wallet.load(_put(tmp_path / "wallet.json", b" " * 100_000))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o666, 0o660])
def test_a_wallet_that_others_may_use_is_refused_with_the_fix(
    tmp_path: Path, content: dict[str, Any], mode: int
) -> None:
    path = _put(tmp_path / "wallet.json", content)
    path.chmod(mode)
    with pytest.raises(WalletPermissions) as caught:
        Wallet.load(path)
    assert caught.value.hint == f"run `chmod 600 {path}`"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_wallet_may_be_read_only_or_a_link_to_a_private_file(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    _put(tmp_path / "mounted", content).chmod(0o400)
    (tmp_path / "wallet.json").symlink_to(tmp_path / "mounted")
    assert Wallet.load(tmp_path / "wallet.json").address == ADDRESS
    (tmp_path / "mounted").chmod(0o444)
    with pytest.raises(WalletPermissions):
        Wallet.load(tmp_path / "wallet.json")


def test_a_missing_wallet_is_named_with_its_fix(tmp_path: Path) -> None:
    for path in (tmp_path / "wallet.json", tmp_path / "missing" / "wallet.json"):
        with pytest.raises(WalletNotFound, match="there is no wallet at") as caught:
            Wallet.load(path)
        assert "mycelium wallet new" in (caught.value.hint or "")
    with pytest.raises(WalletError, match="not a regular file"):
        Wallet.load(tmp_path)


def test_an_empty_passphrase_is_a_missing_one(tmp_path: Path, content: dict[str, Any]) -> None:
    with pytest.raises(PassphraseRequired):
        Wallet.create(tmp_path / "new.json", "")
    assert list(tmp_path.iterdir()) == []
    wallet = Wallet.load(_put(tmp_path / "wallet.json", content))
    with pytest.raises(PassphraseRequired) as caught:
        wallet.unlock("")
    assert "MYCELIUM_DECRYPT_KEY" in (caught.value.hint or "")


def test_a_passphrase_that_is_not_text_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Wallet.create(tmp_path / "wallet.json", "p4ss\udcff")
    assert "p4ss" not in f"{caught.value!r} {caught.value.hint}"
    assert caught.value.__cause__ is None


def test_where_the_passphrase_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = {"MYCELIUM_DECRYPT_KEY": "from the variable"}
    assert find_passphrase("given", variable) == "given"
    assert find_passphrase(None, variable) == find_passphrase("", variable) == "from the variable"
    assert find_passphrase("", {"MYCELIUM_DECRYPT_KEY": ""}) is None
    assert find_passphrase(None, {}) is None
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", " spaces count ")
    assert require_passphrase() == find_passphrase() == " spaces count "
    with pytest.raises(PassphraseRequired) as caught:
        require_passphrase(None, {})
    assert "MYCELIUM_DECRYPT_KEY" in (caught.value.hint or "")


def test_secrets_are_shown_by_nothing(tmp_path: Path, content: dict[str, Any]) -> None:
    wallet = Wallet.load(_put(tmp_path / "wallet.json", content))
    secret = wallet.unlock(PASSPHRASE)
    shown = f"{secret} {secret!r} {[secret]} {wallet} {wallet!r}"
    assert "S" not in shown.replace("Secret", "").replace("PosixPath", "").replace(ADDRESS, "")
    assert content["encrypted_secret"] not in shown
    assert not hasattr(secret, "__dict__")
    for leak in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="not pickled"):
            leak(secret)


def test_the_key_derivation_is_as_slow_as_promised() -> None:
    assert module._ITERATIONS == 600_000
