//! The ledger entries of a transaction's footprint, checked against its keys and sized for rent.

use crate::{error::host_error, fees::size_for_rent, settings::LedgerInfo, xdr::decode};
use pyo3::{prelude::*, pybacked::PyBackedBytes};
use soroban_env_host::{
    e2e_invoke::TtlLedgerEntryMeta,
    ledger_info::get_key_durability,
    xdr::{Hash, LedgerEntry, LedgerEntryData, LedgerFootprint, LedgerKey},
};

/// A key's entry as Python hands it over: XDR and live-until ledger, or None when there is none.
pub type Given = Option<(PyBackedBytes, Option<u32>)>;

pub struct Footprint<'a> {
    /// What the host takes: one item for each key, read-only keys first.
    pub entries: Vec<(Option<&'a [u8]>, Option<TtlLedgerEntryMeta>)>,
    /// Whether contract code is among the entries to be restored.
    pub restores_code: bool,
    /// Contract code that is live.
    live_code: Vec<LedgerEntry>,
}

impl<'a> Footprint<'a> {
    pub fn new(
        ledger: &LedgerInfo,
        footprint: &LedgerFootprint,
        restored_rw_indices: &[u32],
        given: &'a [Given],
    ) -> PyResult<Self> {
        let read_only = footprint.read_only.len();
        let count = read_only + footprint.read_write.len();
        if count != given.len() {
            return Err(host_error(format!(
                "the footprint has {count} keys, but {} entries were given",
                given.len()
            )));
        }
        let restorable = footprint.read_write.len();
        if let Some(index) = restored_rw_indices
            .iter()
            .find(|index| **index as usize >= restorable)
        {
            return Err(host_error(format!(
                "restored index {index} is beyond the {restorable} read-write keys"
            )));
        }
        let mut checked = Self {
            entries: Vec::with_capacity(count),
            restores_code: false,
            live_code: Vec::new(),
        };
        let keys = footprint
            .read_only
            .iter()
            .chain(footprint.read_write.iter());
        for (index, (key, given)) in keys.zip(given).enumerate() {
            let Some((bytes, live_until)) = given else {
                checked.entries.push((None, None));
                continue;
            };
            let restored = restored_rw_indices
                .iter()
                .any(|restored| read_only + *restored as usize == index);
            check_live_until(ledger, index, key, *live_until)?;
            let size = checked.size(ledger, index, key, bytes, restored)?;
            let ttl = live_until.map(|live_until_ledger| TtlLedgerEntryMeta {
                live_until_ledger,
                entry_size_for_rent: size,
            });
            checked.entries.push((Some(bytes), ttl));
        }
        Ok(checked)
    }

    /// Hash and wasm of the contract code that is live.
    pub fn codes(&self) -> Vec<(Hash, &[u8])> {
        self.live_code
            .iter()
            .filter_map(|entry| match &entry.data {
                LedgerEntryData::ContractCode(code) => {
                    Some((code.hash.clone(), code.code.as_slice()))
                }
                _ => None,
            })
            .collect()
    }

    /// The entry's size for rent; only contract code has to be decoded for it.
    fn size(
        &mut self,
        ledger: &LedgerInfo,
        index: usize,
        key: &LedgerKey,
        bytes: &[u8],
        restored: bool,
    ) -> PyResult<u32> {
        if !matches!(key, LedgerKey::ContractCode(_)) {
            return u32::try_from(bytes.len())
                .map_err(|_| host_error(format!("entry {index} is too large")));
        }
        let entry: LedgerEntry = decode(&format!("entry {index} (LedgerEntry)"), bytes)?;
        if entry.to_key() != *key {
            return Err(host_error(format!("entry {index} belongs to another key")));
        }
        let size = size_for_rent(ledger.network(), &entry, bytes)?;
        if restored {
            self.restores_code = true;
        } else {
            self.live_code.push(entry);
        }
        Ok(size)
    }
}

fn check_live_until(
    ledger: &LedgerInfo,
    index: usize,
    key: &LedgerKey,
    live_until: Option<u32>,
) -> PyResult<()> {
    let current = ledger.host.sequence_number;
    match (get_key_durability(key), live_until) {
        (Some(_), None) => Err(host_error(format!(
            "entry {index} is contract data or code and needs a live-until ledger"
        ))),
        (None, Some(_)) => Err(host_error(format!(
            "entry {index} is neither contract data nor code and has no live-until ledger"
        ))),
        (Some(_), Some(ledger)) if ledger < current => Err(host_error(format!(
            "entry {index} expired at ledger {ledger}, before the current ledger {current}"
        ))),
        _ => Ok(()),
    }
}
