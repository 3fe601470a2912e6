"""What the SDK does on a chain, as the one operation of a transaction; and the keys of the entries it looks
at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stellar_sdk import Address, Keypair, StrKey, xdr
from stellar_sdk.operation import ExtendFootprintTTL, InvokeHostFunction, RestoreFootprint
from stellar_sdk.utils import sha256

from mycelium_sdk.chain.base import Work
from mycelium_sdk.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "account_key",
    "code_key",
    "contract_id_of",
    "create_contract",
    "data_key",
    "extend",
    "instance_key",
    "invoke",
    "is_entry_of",
    "restore",
    "setting_key",
    "upload_code",
]

_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_]{1,32}", re.ASCII)


def invoke(contract_id: str, function: str, arguments: Sequence[xdr.SCVal]) -> Work:
    """Call a function of a contract. Raises `InputError` for what cannot be a function's name."""
    if not _FUNCTION_NAME.fullmatch(function):
        raise InputError(
            "that cannot be the name of a contract's function",
            hint="names are 1 to 32 letters, digits and underscores",
        )
    return _host_function(
        xdr.HostFunction(
            xdr.HostFunctionType.HOST_FUNCTION_TYPE_INVOKE_CONTRACT,
            invoke_contract=xdr.InvokeContractArgs(
                contract_address=Address(contract_id).to_xdr_sc_address(),
                function_name=xdr.SCSymbol(function.encode("utf-8")),
                args=list(arguments),
            ),
        )
    )


def upload_code(wasm: bytes) -> Work:
    """Put a contract's code on the chain, under its SHA-256. Code that is there already is left as it is."""
    return _host_function(
        xdr.HostFunction(xdr.HostFunctionType.HOST_FUNCTION_TYPE_UPLOAD_CONTRACT_WASM, wasm=wasm)
    )


def create_contract(wasm_hash: bytes, deployer: str, salt: bytes) -> Work:
    """Make a contract of uploaded code, at the address that `contract_id_of` gives."""
    return _host_function(
        xdr.HostFunction(
            xdr.HostFunctionType.HOST_FUNCTION_TYPE_CREATE_CONTRACT_V2,
            create_contract_v2=xdr.CreateContractArgsV2(
                contract_id_preimage=_preimage(deployer, salt),
                executable=xdr.ContractExecutable(
                    xdr.ContractExecutableType.CONTRACT_EXECUTABLE_WASM, xdr.Hash(wasm_hash)
                ),
                constructor_args=[],
            ),
        )
    )


def restore(keys: Sequence[xdr.LedgerKey]) -> Work:
    """Bring archived entries back. Live and missing ones are left as they are."""
    return Work(RestoreFootprint(), _footprint(read_write=keys))


def extend(keys: Sequence[xdr.LedgerKey], ledgers: int) -> Work:
    """Have live entries live for so many ledgers from the one that applies it, at least.

    Archived and missing ones are left as they are, and the transaction succeeds all the same.
    """
    return Work(ExtendFootprintTTL(ledgers), _footprint(read_only=keys))


def _footprint(
    *, read_only: Sequence[xdr.LedgerKey] = (), read_write: Sequence[xdr.LedgerKey] = ()
) -> xdr.SorobanTransactionData:
    return xdr.SorobanTransactionData(
        ext=xdr.SorobanTransactionDataExt(0),
        resources=xdr.SorobanResources(
            footprint=xdr.LedgerFootprint(read_only=list(read_only), read_write=list(read_write)),
            instructions=xdr.Uint32(0),
            disk_read_bytes=xdr.Uint32(0),
            write_bytes=xdr.Uint32(0),
        ),
        resource_fee=xdr.Int64(0),
    )


def contract_id_of(network_passphrase: str, deployer: str, salt: bytes) -> str:
    """The address of the contract that `deployer` makes with `salt` (CAP-46: a hash of network, deployer
    and salt)."""
    preimage = xdr.HashIDPreimage(
        xdr.EnvelopeType.ENVELOPE_TYPE_CONTRACT_ID,
        contract_id=xdr.HashIDPreimageContractID(
            network_id=xdr.Hash(sha256(network_passphrase.encode("utf-8"))),
            contract_id_preimage=_preimage(deployer, salt),
        ),
    )
    return StrKey.encode_contract(sha256(preimage.to_xdr_bytes()))


def data_key(contract_id: str, key: xdr.SCVal) -> xdr.LedgerKey:
    """The ledger key of a contract's persistent entry."""
    return xdr.LedgerKey(
        xdr.LedgerEntryType.CONTRACT_DATA,
        contract_data=xdr.LedgerKeyContractData(
            contract=Address(contract_id).to_xdr_sc_address(),
            key=key,
            durability=xdr.ContractDataDurability.PERSISTENT,
        ),
    )


def instance_key(contract_id: str) -> xdr.LedgerKey:
    """The ledger key of a contract itself: what code it runs."""
    return data_key(contract_id, xdr.SCVal(xdr.SCValType.SCV_LEDGER_KEY_CONTRACT_INSTANCE))


def code_key(wasm_hash: bytes) -> xdr.LedgerKey:
    """The ledger key of uploaded code."""
    return xdr.LedgerKey(
        xdr.LedgerEntryType.CONTRACT_CODE, contract_code=xdr.LedgerKeyContractCode(hash=xdr.Hash(wasm_hash))
    )


def account_key(address: str) -> xdr.LedgerKey:
    """The ledger key of an account."""
    return xdr.LedgerKey(
        xdr.LedgerEntryType.ACCOUNT,
        account=xdr.LedgerKeyAccount(account_id=Keypair.from_public_key(address).xdr_account_id()),
    )


def setting_key(setting: xdr.ConfigSettingID) -> xdr.LedgerKey:
    """The ledger key of one of the network's settings."""
    return xdr.LedgerKey(
        xdr.LedgerEntryType.CONFIG_SETTING, config_setting=xdr.LedgerKeyConfigSetting(setting)
    )


def is_entry_of(key: xdr.LedgerKey, data: xdr.LedgerEntryData) -> bool:
    """Whether the entry is the key's. Of kinds that no function here makes a key of, the kind is compared."""
    made: xdr.LedgerKey | None = None
    if data.account is not None:
        made = xdr.LedgerKey(data.type, account=xdr.LedgerKeyAccount(data.account.account_id))
    elif data.contract_data is not None:
        entry = data.contract_data
        made = xdr.LedgerKey(
            data.type, contract_data=xdr.LedgerKeyContractData(entry.contract, entry.key, entry.durability)
        )
    elif data.contract_code is not None:
        made = xdr.LedgerKey(data.type, contract_code=xdr.LedgerKeyContractCode(data.contract_code.hash))
    elif data.config_setting is not None:
        made = setting_key(data.config_setting.config_setting_id)
    return data.type is key.type if made is None else made == key


def _preimage(deployer: str, salt: bytes) -> xdr.ContractIDPreimage:
    return xdr.ContractIDPreimage(
        xdr.ContractIDPreimageType.CONTRACT_ID_PREIMAGE_FROM_ADDRESS,
        from_address=xdr.ContractIDPreimageFromAddress(
            address=Address(deployer).to_xdr_sc_address(), salt=xdr.Uint256(salt)
        ),
    )


def _host_function(function: xdr.HostFunction) -> Work:
    return Work(InvokeHostFunction(host_function=function, auth=None))
