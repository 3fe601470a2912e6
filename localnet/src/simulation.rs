//! What a simulation found, as Python reads it.

use crate::xdr::{bytes_list, encode, encode_all};
use pyo3::{prelude::*, types::PyList};
use soroban_env_host::{
    events::HostEvent,
    xdr::{DiagnosticEvent, SorobanTransactionData},
    HostError,
};
use soroban_simulation::simulation::{InvokeHostFunctionSimulationResult, LedgerEntryDiff};

/// One entry that a simulated invocation would write.
#[pyclass(frozen, module = "mycelium_localnet._native")]
#[derive(Clone)]
pub struct StateChange {
    key: Vec<u8>,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

#[pymethods]
impl StateChange {
    #[getter]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[getter]
    fn before(&self) -> Option<&[u8]> {
        self.before.as_deref()
    }

    #[getter]
    fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }
}

impl StateChange {
    /// None for an entry that was not there before and is not there after.
    fn from_diff(diff: &LedgerEntryDiff) -> PyResult<Option<Self>> {
        let Some(entry) = diff.state_after.as_ref().or(diff.state_before.as_ref()) else {
            return Ok(None);
        };
        Ok(Some(Self {
            key: encode(&entry.to_key())?,
            before: diff.state_before.as_ref().map(encode).transpose()?,
            after: diff.state_after.as_ref().map(encode).transpose()?,
        }))
    }
}

/// What a simulation found.
#[pyclass(frozen, module = "mycelium_localnet._native")]
#[derive(Default)]
pub struct Simulation {
    #[pyo3(get)]
    error: Option<String>,
    transaction: Option<Quote>,
    restore: Option<Quote>,
    auth: Vec<Vec<u8>>,
    result: Option<Vec<u8>>,
    events: Vec<Vec<u8>>,
    modified: Vec<StateChange>,
    #[pyo3(get)]
    instructions: u32,
    #[pyo3(get)]
    memory: u32,
}

/// A transaction's Soroban data, and the resource fee inside it.
struct Quote {
    data: Vec<u8>,
    fee: i64,
}

impl Quote {
    fn new(data: &SorobanTransactionData) -> PyResult<Self> {
        Ok(Self {
            data: encode(data)?,
            fee: data.resource_fee,
        })
    }
}

#[pymethods]
impl Simulation {
    #[getter]
    fn transaction_data(&self) -> Option<&[u8]> {
        self.transaction.as_ref().map(|quote| quote.data.as_slice())
    }

    #[getter]
    fn min_resource_fee(&self) -> i64 {
        self.transaction.as_ref().map_or(0, |quote| quote.fee)
    }

    #[getter]
    fn restore_preamble(&self) -> Option<(&[u8], i64)> {
        self.restore
            .as_ref()
            .map(|quote| (quote.data.as_slice(), quote.fee))
    }

    #[getter]
    fn auth<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        bytes_list(py, &self.auth)
    }

    #[getter]
    fn result(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        bytes_list(py, &self.events)
    }

    #[getter]
    fn modified(&self) -> Vec<StateChange> {
        self.modified.clone()
    }
}

impl Simulation {
    /// Nothing but why it failed.
    pub fn failed(error: String) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }

    /// A quote, and the quote of the restoration that must come before.
    pub fn quoted(
        transaction: &SorobanTransactionData,
        restore: Option<&SorobanTransactionData>,
    ) -> PyResult<Self> {
        Ok(Self {
            transaction: Some(Quote::new(transaction)?),
            restore: restore.map(Quote::new).transpose()?,
            ..Self::default()
        })
    }

    /// Everything that an invocation's simulation found, failed or not.
    pub fn of_invocation(found: &InvokeHostFunctionSimulationResult) -> PyResult<Self> {
        let (result, error) = match &found.invoke_result {
            Ok(value) => (Some(encode(value)?), None),
            Err(error) => (None, Some(describe(error, &found.diagnostic_events))),
        };
        let mut modified = Vec::with_capacity(found.modified_entries.len());
        for diff in &found.modified_entries {
            modified.extend(StateChange::from_diff(diff)?);
        }
        Ok(Self {
            error,
            transaction: found
                .transaction_data
                .as_ref()
                .map(Quote::new)
                .transpose()?,
            restore: None,
            auth: encode_all(&found.auth)?,
            result,
            events: encode_all(&found.diagnostic_events)?,
            modified,
            instructions: found.simulated_instructions,
            memory: found.simulated_memory,
        })
    }
}

/// A failure as the network's RPC words it: the error, and the event log, newest first.
///
/// The host adds the log to an error by itself only when built for tests, which RPC servers are and this module is not.
fn describe(error: &HostError, events: &[DiagnosticEvent]) -> String {
    let mut words = format!("HostError: {:?}\n", error.error);
    if !events.is_empty() {
        words.push_str("\nEvent log (newest first):\n");
    }
    for (age, event) in events.iter().rev().enumerate() {
        let event = HostEvent {
            event: event.event.clone(),
            failed_call: false,
        };
        words.push_str(&format!("   {age}: {event}\n"));
    }
    words
}
