"""The Soroban part of a transaction against the network's limits: declared resources, footprint, resource
fee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk.xdr import AssetType, LedgerKey, OperationType

from mycelium_localnet import fees, keys, pack, results
from mycelium_localnet.envelopes import account_of_id, present

if TYPE_CHECKING:
    from mycelium_localnet._native import NetworkSettings
    from mycelium_localnet.envelopes import Soroban, Transaction

_ACCOUNT, _TRUSTLINE = 0, 1
_FOOTPRINT_TYPES = frozenset((_ACCOUNT, _TRUSTLINE, keys.CONTRACT_DATA, keys.CONTRACT_CODE))


def problem(transaction: Transaction, soroban: Soroban, settings: NetworkSettings) -> bytes | None:
    """None, or the DiagnosticEvent that says which limit or rule the transaction breaks
    (txSOROBAN_INVALID)."""
    return (
        _over_limit(transaction, soroban, settings)
        or _bad_footprint(soroban, settings)
        or _bad_archived_indices(soroban)
        or _bad_fee(transaction, soroban, settings)
        or _repeated_key(soroban)
    )


def entry_too_large(key: bytes, size: int, settings: NetworkSettings) -> bytes | None:
    """None, or the DiagnosticEvent that says that a contract entry of `size` bytes is larger than the network
    allows."""
    kind = keys.entry_type(key)
    if kind == keys.CONTRACT_CODE and size > settings.max_contract_size_bytes:
        return results.error_event(
            results.BUDGET,
            results.EXCEEDED_LIMIT,
            "WASM size exceeds network config maximum contract size",
            [pack.sc_u64(size), pack.sc_u64(settings.max_contract_size_bytes)],
        )
    if kind == keys.CONTRACT_DATA and size > settings.max_contract_data_entry_size_bytes:
        return results.error_event(
            results.BUDGET,
            results.EXCEEDED_LIMIT,
            "ContractData size exceeds network config maximum size",
            [pack.sc_u64(size), pack.sc_u64(settings.max_contract_data_entry_size_bytes)],
        )
    return None


def _over_limit(transaction: Transaction, soroban: Soroban, settings: NetworkSettings) -> bytes | None:
    exceed = "resources exceed network config limit"
    checks: list[tuple[int, str, int, int]] = [
        (
            results.BUDGET,
            f"transaction instructions {exceed}",
            soroban.instructions,
            settings.tx_max_instructions,
        ),
        (
            results.STORAGE,
            f"transaction byte-read {exceed}",
            soroban.disk_read_bytes,
            settings.tx_max_disk_read_bytes,
        ),
        (
            results.STORAGE,
            f"transaction byte-write {exceed}",
            soroban.write_bytes,
            settings.tx_max_write_bytes,
        ),
        (
            results.STORAGE,
            "the number of entries in transaction footprint exceeds the network config limit",
            len(soroban.footprint),
            settings.tx_max_footprint_entries,
        ),
        (
            results.STORAGE,
            f"transaction entry-disk-read {exceed}",
            fees.disk_reads(soroban, restores=restores(transaction)),
            settings.tx_max_disk_read_entries,
        ),
        (
            results.STORAGE,
            f"transaction entry-write {exceed}",
            len(soroban.read_write),
            settings.tx_max_write_entries,
        ),
        (
            results.BUDGET,
            "total transaction size exceeds network config limit",
            len(transaction.envelope),
            settings.tx_max_size_bytes,
        ),
    ]
    for kind, what, value, limit in checks:
        if value > limit:
            return results.error_event(
                kind, results.EXCEEDED_LIMIT, what, [pack.sc_u64(value), pack.sc_u64(limit)]
            )
    return None


def _bad_footprint(soroban: Soroban, settings: NetworkSettings) -> bytes | None:
    for key in soroban.footprint:
        kind = keys.entry_type(key)
        if kind not in _FOOTPRINT_TYPES:
            return results.error_event(
                results.STORAGE,
                results.UNEXPECTED_TYPE,
                "transaction footprint contains unsupported ledger key type",
                [pack.sc_u64(kind)],
            )
        if kind == _TRUSTLINE and not _can_be_trusted(key):
            return _invalid("transaction footprint contains invalid trustline asset")
        if len(key) > settings.max_contract_data_key_size_bytes:
            return results.error_event(
                results.STORAGE,
                results.EXCEEDED_LIMIT,
                "transaction footprint key exceeds network config limit",
                [pack.sc_u64(len(key)), pack.sc_u64(settings.max_contract_data_key_size_bytes)],
            )
    return None


def _can_be_trusted(key: bytes) -> bool:
    """Whether there can be such a trustline: not for the native asset, nor for one's own, nor for what no
    asset is called."""
    trustline = present(LedgerKey.from_xdr_bytes(key).trust_line)
    asset = trustline.asset
    if asset.type == AssetType.ASSET_TYPE_POOL_SHARE:
        return True
    if asset.alpha_num4 is not None:
        code, shortest, issuer = asset.alpha_num4.asset_code.asset_code4, 1, asset.alpha_num4.issuer
    elif asset.alpha_num12 is not None:
        code, shortest, issuer = asset.alpha_num12.asset_code.asset_code12, 5, asset.alpha_num12.issuer
    else:
        return False
    name = code.rstrip(b"\0")
    named = len(name) >= shortest and name.isalnum()
    return named and account_of_id(issuer) != account_of_id(trustline.account_id)


def _bad_archived_indices(soroban: Soroban) -> bytes | None:
    last = -1
    for index in soroban.archived:
        if index <= last:
            return _invalid("archivedSorobanEntries must be sorted in ascending order")
        if index >= len(soroban.read_write):
            return _invalid("archivedSorobanEntries index is out of bounds", index, len(soroban.read_write))
        if not keys.is_persistent(soroban.read_write[index]):
            return _invalid("archivedSorobanEntries index points to a non-persistent entry", index)
        last = index
    return None


def _bad_fee(transaction: Transaction, soroban: Soroban, settings: NetworkSettings) -> bytes | None:
    if soroban.resource_fee > transaction.fee:
        return results.error_event(
            results.STORAGE,
            results.EXCEEDED_LIMIT,
            "transaction `sorobanData.resourceFee` is higher than the full transaction fee",
            [pack.sc_u64(soroban.resource_fee), pack.sc_u64(transaction.fee)],
        )
    needed = sum(required_fee(transaction, soroban, settings))
    if soroban.resource_fee < needed:
        return results.error_event(
            results.STORAGE,
            results.EXCEEDED_LIMIT,
            "transaction `sorobanData.resourceFee` is lower than the actual Soroban resource fee",
            [pack.sc_u64(soroban.resource_fee), pack.sc_u64(needed)],
        )
    return None


def required_fee(transaction: Transaction, soroban: Soroban, settings: NetworkSettings) -> tuple[int, int]:
    """`(non-refundable, refundable)` resource fee that the declared resources cost, before anything is
    applied."""
    size = len(transaction.envelope)
    return fees.resource_fee(soroban, settings, size=size, restores=restores(transaction))


def restores(transaction: Transaction) -> bool:
    """Whether it is a RestoreFootprint, which reads all it writes from disk."""
    return transaction.operations[0].body.type == OperationType.RESTORE_FOOTPRINT


def _repeated_key(soroban: Soroban) -> bytes | None:
    if len(set(soroban.footprint)) == len(soroban.footprint):
        return None
    return _invalid(
        "Found duplicate key in the Soroban footprint; every key across read-only and read-write footprints"
        " has to be unique."
    )


def _invalid(message: str, *arguments: int) -> bytes:
    return results.error_event(
        results.STORAGE, results.INVALID_INPUT, message, [pack.sc_u64(argument) for argument in arguments]
    )
