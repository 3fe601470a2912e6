//! The ledger as the recording host sees it: entries fetched by the caller's `get`, each once.

use crate::{
    error::host_error,
    worker::Lookup,
    xdr::{decode, encode},
};
use pyo3::prelude::*;
use soroban_env_host::{
    ledger_info::get_key_durability,
    storage::{EntryWithLiveUntil, SnapshotSource},
    xdr::{ContractDataDurability, LedgerEntry, LedgerKey, ScErrorCode, ScErrorType},
    HostError,
};
use std::{cell::RefCell, collections::HashMap, rc::Rc};

pub struct Snapshot {
    lookup: Lookup,
    sequence: u32,
    seen: RefCell<HashMap<Rc<LedgerKey>, Option<EntryWithLiveUntil>>>,
    problem: RefCell<Option<PyErr>>,
}

impl Snapshot {
    pub fn new(lookup: Lookup, sequence: u32) -> Self {
        Self {
            lookup,
            sequence,
            seen: RefCell::default(),
            problem: RefCell::default(),
        }
    }

    /// Fails if an entry was handed over that cannot be right, since the host cannot report it in its own words.
    pub fn check(&self) -> PyResult<()> {
        self.problem.take().map_or(Ok(()), Err)
    }

    fn fetch(&self, key: &LedgerKey) -> PyResult<Option<EntryWithLiveUntil>> {
        let found = self
            .lookup
            .get(encode(key)?)
            .map_err(|_| host_error("the ledger lookup failed"))?;
        let Some((bytes, live_until)) = found else {
            return Ok(None);
        };
        let entry: LedgerEntry = decode("an entry of the ledger (LedgerEntry)", &bytes)?;
        if entry.to_key() != *key {
            return Err(host_error(
                "the ledger lookup returned the entry of another key",
            ));
        }
        let durability = get_key_durability(key);
        if durability.is_some() != live_until.is_some() {
            return Err(host_error(
                "the ledger lookup must return a live-until ledger for contract data and code, and only for them",
            ));
        }
        // Expired temporary entries are gone; archived persistent ones are the host's to restore.
        let expired = live_until.is_some_and(|ledger| ledger < self.sequence);
        if expired && durability == Some(ContractDataDurability::Temporary) {
            return Ok(None);
        }
        Ok(Some((Rc::new(entry), live_until)))
    }
}

impl SnapshotSource for Snapshot {
    fn get(&self, key: &Rc<LedgerKey>) -> Result<Option<EntryWithLiveUntil>, HostError> {
        if let Some(known) = self.seen.borrow().get(key) {
            return Ok(known.clone());
        }
        let found = self.fetch(key).map_err(|problem| {
            self.problem.borrow_mut().get_or_insert(problem);
            HostError::from((ScErrorType::Storage, ScErrorCode::InternalError))
        })?;
        self.seen.borrow_mut().insert(key.clone(), found.clone());
        Ok(found)
    }
}
