//! Fees and rent, by the network's own arithmetic.

use crate::{
    error::{from_soroban, host_error},
    settings::NetworkSettings,
    xdr::decode,
};
use pyo3::{prelude::*, pybacked::PyBackedBytes};
use soroban_env_host::{
    e2e_invoke,
    fees::{
        compute_rent_fee, compute_transaction_resource_fee, LedgerEntryRentChange,
        TransactionResources,
    },
    xdr::{LedgerEntry, LedgerEntryData},
};

/// `(is_persistent, is_code_entry, old_size, new_size, old_live_until, new_live_until)`
type RentChange = (bool, bool, u32, u32, u32, u32);

/// Bytes that rent is paid for.
#[pyfunction]
pub fn entry_size_for_rent(
    settings: &Bound<'_, NetworkSettings>,
    entry: PyBackedBytes,
) -> PyResult<u32> {
    let decoded: LedgerEntry = decode("entry (LedgerEntry)", &entry)?;
    size_for_rent(settings.get(), &decoded, &entry)
}

/// The size that rent is paid for, of an entry and its encoding.
pub fn size_for_rent(
    settings: &NetworkSettings,
    entry: &LedgerEntry,
    encoded: &[u8],
) -> PyResult<u32> {
    let encoded_size =
        u32::try_from(encoded.len()).map_err(|_| host_error("an entry is too large"))?;
    if !matches!(entry.data, LedgerEntryData::ContractCode(_)) {
        return Ok(encoded_size);
    }
    e2e_invoke::entry_size_for_rent(&settings.budget(0)?, entry, encoded_size)
        .map_err(|error| from_soroban("cannot size an entry for rent", &error))
}

/// Stroops (non-refundable, refundable) of a transaction's resources, without rent.
#[pyfunction]
#[pyo3(signature = (settings, *, instructions, disk_read_entries, write_entries, disk_read_bytes, write_bytes, contract_events_size, transaction_size))]
#[allow(clippy::too_many_arguments)]
pub fn transaction_resource_fee(
    settings: &Bound<'_, NetworkSettings>,
    instructions: u32,
    disk_read_entries: u32,
    write_entries: u32,
    disk_read_bytes: u32,
    write_bytes: u32,
    contract_events_size: u32,
    transaction_size: u32,
) -> (i64, i64) {
    compute_transaction_resource_fee(
        &TransactionResources {
            instructions,
            disk_read_entries,
            write_entries,
            disk_read_bytes,
            write_bytes,
            contract_events_size_bytes: contract_events_size,
            transaction_size_bytes: transaction_size,
        },
        &settings.get().config.fee_configuration,
    )
}

/// Stroops of rent for changes of TTLs and sizes.
#[pyfunction]
#[pyo3(signature = (settings, *, changes, ledger_sequence))]
pub fn rent_fee(
    settings: &Bound<'_, NetworkSettings>,
    changes: Vec<RentChange>,
    ledger_sequence: u32,
) -> i64 {
    let changes: Vec<_> = changes
        .into_iter()
        .map(
            |(is_persistent, is_code_entry, old_size, new_size, old_live_until, new_live_until)| {
                LedgerEntryRentChange {
                    is_persistent,
                    is_code_entry,
                    old_size_bytes: old_size,
                    new_size_bytes: new_size,
                    old_live_until_ledger: old_live_until,
                    new_live_until_ledger: new_live_until,
                }
            },
        )
        .collect();
    rent(settings.get(), &changes, ledger_sequence)
}

/// Rent for `changes` at this ledger, in stroops.
pub fn rent(
    settings: &NetworkSettings,
    changes: &[LedgerEntryRentChange],
    ledger_sequence: u32,
) -> i64 {
    compute_rent_fee(
        changes,
        &settings.config.rent_fee_configuration,
        ledger_sequence,
    )
}
