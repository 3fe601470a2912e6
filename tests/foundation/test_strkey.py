"""Addresses, against the implementation of stellar_sdk."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stellar_sdk import StrKey

from mycelium_sdk import strkey
from mycelium_sdk.errors import InputError

ACCOUNT = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
CONTRACT = "CDFXP42NITRLDGYUMJ5OT63EVWBROJTCXQR64GUSDWHY2LH3AQM2TXYP"
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_keys = st.binary(min_size=32, max_size=32)


@given(_keys)
def test_addresses_are_written_and_read_like_stellar_sdk_does(key: bytes) -> None:
    account = StrKey.encode_ed25519_public_key(key)
    assert strkey.encode_account(key) == account
    assert strkey.decode_account(account) == key
    assert strkey.check_account(account) is account
    contract = StrKey.encode_contract(key)
    assert strkey.is_contract(contract)
    assert strkey.check_contract(contract) is contract
    seed = StrKey.encode_ed25519_secret_seed(key)
    assert strkey.encode_seed(key) == seed
    assert strkey.decode_seed(seed) == key


@given(_keys)
def test_every_kind_of_key_is_only_its_own_kind(key: bytes) -> None:
    kinds = {
        "account": StrKey.encode_ed25519_public_key(key),
        "contract": StrKey.encode_contract(key),
        "seed": StrKey.encode_ed25519_secret_seed(key),
        "transaction": StrKey.encode_pre_auth_tx(key),
        "hash": StrKey.encode_sha256_hash(key),
    }
    assert [name for name, text in kinds.items() if strkey.is_account(text)] == ["account"]
    assert [name for name, text in kinds.items() if strkey.is_contract(text)] == ["contract"]
    assert [name for name, text in kinds.items() if strkey.decode_seed(text) is not None] == ["seed"]


@given(_keys, st.integers(0, 55), st.sampled_from(_ALPHABET))
def test_one_wrong_character_is_noticed(key: bytes, place: int, character: str) -> None:
    address = strkey.encode_account(key)
    changed = address[:place] + character + address[place + 1 :]
    assert strkey.is_account(changed) == (changed == address)
    assert strkey.is_account(changed) == StrKey.is_valid_ed25519_public_key(changed)


@given(st.text(alphabet=_ALPHABET + "=g \n018", min_size=54, max_size=58))
def test_nonsense_is_judged_like_stellar_sdk_does(text: str) -> None:
    assert strkey.is_account("G" + text[1:]) == StrKey.is_valid_ed25519_public_key("G" + text[1:])


_BAD: list[Any] = [
    "",
    "G",
    ACCOUNT.lower(),
    ACCOUNT + "\n",
    " " + ACCOUNT,
    ACCOUNT + "=",
    ACCOUNT[:-1],
    ACCOUNT + "A",
    ACCOUNT.replace("G", "\uff27", 1),
    "M" + ACCOUNT[1:],
    base64.b32encode(bytes(35)).decode(),
    ACCOUNT.encode(),
    None,
    7,
    [ACCOUNT],
]


@pytest.mark.parametrize("value", _BAD, ids=repr)
def test_what_is_no_address_is_refused(value: Any) -> None:
    assert not strkey.is_account(value)
    assert not strkey.is_contract(value)
    assert strkey.decode_seed(value) is None
    for check in (strkey.check_account, strkey.check_contract, strkey.decode_account):
        with pytest.raises(InputError) as caught:
            check(value)
        assert caught.value.hint


def test_a_seed_given_for_an_address_is_not_repeated() -> None:
    seed = StrKey.encode_ed25519_secret_seed(bytes(range(32)))
    with pytest.raises(InputError, match="secret seed") as caught:
        strkey.check_account(seed)
    assert seed not in f"{caught.value!r} {caught.value.hint} {vars(caught.value)}"


@pytest.mark.parametrize("size", [0, 31, 33])
def test_keys_have_32_bytes(size: int) -> None:
    for encode in (strkey.encode_account, strkey.encode_seed):
        with pytest.raises(InputError, match=f"not {size}"):
            encode(bytes(size))
