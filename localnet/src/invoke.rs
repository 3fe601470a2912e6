//! The enforcing invocation: a host function run for real, inside a transaction's footprint and limits.

use crate::{
    error::{from_soroban, is_internal},
    fees::rent,
    footprint::{Footprint, Given},
    modules::{Held, ModuleCache},
    settings::{array32, LedgerInfo},
    worker::run,
    xdr::{bytes_list, decode, encode_all},
};
use pyo3::{prelude::*, pybacked::PyBackedBytes, types::PyList};
use soroban_env_host::{
    budget::Budget,
    e2e_invoke::{extract_rent_changes, invoke_host_function, LedgerEntryChange},
    xdr::{
        AccountId, ContractEvent, ContractEventBody, ContractEventType, ContractEventV0,
        DiagnosticEvent, ExtensionPoint, HostFunction, ScError, ScErrorCode, ScSymbol, ScVal,
        SorobanAuthorizationEntry, SorobanResources,
    },
    HostError as SorobanError, ModuleCache as HostModules,
};

/// One key of the footprint after an invocation.
#[pyclass(frozen, module = "mycelium_localnet._native")]
#[derive(Clone)]
pub struct Change {
    key: Vec<u8>,
    new_value: Option<Vec<u8>>,
    #[pyo3(get)]
    read_only: bool,
    #[pyo3(get)]
    old_size_for_rent: u32,
    #[pyo3(get)]
    new_size_for_rent: u32,
    #[pyo3(get)]
    old_live_until: Option<u32>,
    #[pyo3(get)]
    new_live_until: Option<u32>,
}

#[pymethods]
impl Change {
    #[getter]
    fn key(&self) -> &[u8] {
        &self.key
    }

    #[getter]
    fn new_value(&self) -> Option<&[u8]> {
        self.new_value.as_deref()
    }
}

impl From<LedgerEntryChange> for Change {
    fn from(change: LedgerEntryChange) -> Self {
        let ttl = change.ttl_change.as_ref();
        Self {
            read_only: change.read_only,
            old_size_for_rent: change.old_entry_size_bytes_for_rent,
            new_size_for_rent: change.new_entry_size_bytes_for_rent,
            old_live_until: ttl.map(|ttl| ttl.old_live_until_ledger),
            new_live_until: ttl.map(|ttl| ttl.new_live_until_ledger),
            key: change.encoded_key,
            new_value: change.encoded_new_value,
        }
    }
}

/// What an enforcing invocation did.
#[pyclass(frozen, module = "mycelium_localnet._native")]
#[derive(Default)]
pub struct Invocation {
    result: Option<Vec<u8>>,
    #[pyo3(get)]
    error: Option<String>,
    #[pyo3(get)]
    error_kind: Option<&'static str>,
    changes: Vec<Change>,
    contract_events: Vec<Vec<u8>>,
    diagnostic_events: Vec<Vec<u8>>,
    #[pyo3(get)]
    instructions: u64,
    #[pyo3(get)]
    memory: u64,
    #[pyo3(get)]
    rent_fee: i64,
}

#[pymethods]
impl Invocation {
    #[getter]
    fn ok(&self) -> bool {
        self.error.is_none()
    }

    #[getter]
    fn result(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }

    #[getter]
    fn changes(&self) -> Vec<Change> {
        self.changes.clone()
    }

    #[getter]
    fn contract_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        bytes_list(py, &self.contract_events)
    }

    #[getter]
    fn diagnostic_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        bytes_list(py, &self.diagnostic_events)
    }
}

/// Run a host function for real, within the transaction's footprint and instructions.
#[pyfunction]
#[pyo3(
    signature = (*, ledger, cache, host_function, resources, restored_rw_indices=Vec::new(), auth, source_account, entries, prng_seed, diagnostics=true),
    text_signature = "(*, ledger, cache, host_function, resources, restored_rw_indices=(), auth, source_account, entries, prng_seed, diagnostics=True)"
)]
#[allow(clippy::too_many_arguments)]
pub fn invoke(
    py: Python<'_>,
    ledger: &Bound<'_, LedgerInfo>,
    cache: &Bound<'_, ModuleCache>,
    host_function: PyBackedBytes,
    resources: PyBackedBytes,
    restored_rw_indices: Vec<u32>,
    auth: Vec<PyBackedBytes>,
    source_account: PyBackedBytes,
    entries: Vec<Given>,
    prng_seed: PyBackedBytes,
    diagnostics: bool,
) -> PyResult<Invocation> {
    let call = Call {
        ledger: ledger.get(),
        host_function: &host_function,
        resources: &resources,
        restored_rw_indices: &restored_rw_indices,
        auth: auth.iter().map(|entry| &**entry).collect(),
        source_account: &source_account,
        prng_seed: array32("prng_seed", &prng_seed)?,
        diagnostics,
    };
    let cache = cache.get();
    run(py, || call.run(cache, &entries))
}

/// One invocation's arguments but for the ledger entries.
struct Call<'a> {
    ledger: &'a LedgerInfo,
    host_function: &'a [u8],
    resources: &'a [u8],
    restored_rw_indices: &'a [u32],
    auth: Vec<&'a [u8]>,
    source_account: &'a [u8],
    prng_seed: [u8; 32],
    diagnostics: bool,
}

impl Call<'_> {
    fn run(&self, cache: &ModuleCache, entries: &[Given]) -> PyResult<Invocation> {
        let settings = self.ledger.network();
        let resources: SorobanResources = decode("resources (SorobanResources)", self.resources)?;
        let footprint = Footprint::new(
            self.ledger,
            &resources.footprint,
            self.restored_rw_indices,
            entries,
        )?;
        let budget = settings.budget(resources.instructions)?;
        let mut events = Vec::new();
        let outcome = if footprint.restores_code {
            // Archived code is not in the network's cache, so compiling it is this transaction's to pay.
            let mut alone = Held::new()?;
            alone.compile(&footprint.codes());
            self.enforce(&budget, alone.modules, &footprint, &mut events)
        } else {
            let held = cache.with(&footprint.codes())?;
            self.enforce(&budget, held.modules.clone(), &footprint, &mut events)
        };
        let mut done = match outcome {
            Ok(done) => done,
            Err(error) => self.failure(&error, &budget, resources.instructions, &mut events)?,
        };
        done.instructions = consumed(budget.get_cpu_insns_consumed())?;
        done.memory = consumed(budget.get_mem_bytes_consumed())?;
        done.diagnostic_events = encode_all(&events)?;
        Ok(done)
    }

    fn enforce(
        &self,
        budget: &Budget,
        modules: HostModules,
        footprint: &Footprint<'_>,
        events: &mut Vec<DiagnosticEvent>,
    ) -> Result<Invocation, SorobanError> {
        let found = invoke_host_function(
            budget,
            self.diagnostics,
            self.host_function,
            self.resources,
            self.restored_rw_indices,
            self.source_account,
            self.auth.iter().copied(),
            self.ledger.host.clone(),
            footprint.entries.iter().copied(),
            &self.prng_seed,
            events,
            None,
            Some(modules),
        )?;
        let result = found.encoded_invoke_result?;
        Ok(Invocation {
            result: Some(result),
            rent_fee: rent(
                self.ledger.network(),
                &extract_rent_changes(&found.ledger_changes),
                self.ledger.host.sequence_number,
            ),
            changes: found.ledger_changes.into_iter().map(Change::from).collect(),
            contract_events: found.encoded_contract_events,
            ..Invocation::default()
        })
    }

    /// A failed transaction; or an exception, when the arguments or the host are at fault.
    fn failure(
        &self,
        error: &SorobanError,
        budget: &Budget,
        instructions: u32,
        events: &mut Vec<DiagnosticEvent>,
    ) -> PyResult<Invocation> {
        self.check_decodes()?;
        if is_internal(error) {
            return Err(from_soroban("the host failed inside", error));
        }
        if self.diagnostics {
            events.push(host_function_failed(error));
        }
        // The network looks at what was used, not at the error: a contract may have turned one into another.
        let over_limit = consumed(budget.get_cpu_insns_consumed())? > u64::from(instructions)
            || consumed(budget.get_mem_bytes_consumed())?
                > u64::from(self.ledger.network().config.tx_memory_limit);
        Ok(Invocation {
            error: Some(format!("{:?}", error.error)),
            error_kind: Some(if over_limit {
                "resource_limit"
            } else {
                "trapped"
            }),
            ..Invocation::default()
        })
    }

    fn check_decodes(&self) -> PyResult<()> {
        decode::<HostFunction>("host_function (HostFunction)", self.host_function)?;
        decode::<AccountId>("source_account (AccountId)", self.source_account)?;
        for entry in &self.auth {
            decode::<SorobanAuthorizationEntry>(
                "an auth entry (SorobanAuthorizationEntry)",
                entry,
            )?;
        }
        Ok(())
    }
}

fn consumed(reading: Result<u64, SorobanError>) -> PyResult<u64> {
    reading.map_err(|error| from_soroban("the budget cannot be read", &error))
}

/// The event that the network adds to a failed transaction's diagnostics.
fn host_function_failed(error: &SorobanError) -> DiagnosticEvent {
    let code =
        ScError::try_from(error.error).unwrap_or(ScError::Context(ScErrorCode::InternalError));
    let name = ScSymbol("host_fn_failed".try_into().unwrap_or_default());
    let topics = vec![ScVal::Symbol(name), ScVal::Error(code)];
    DiagnosticEvent {
        in_successful_contract_call: false,
        event: ContractEvent {
            ext: ExtensionPoint::V0,
            contract_id: None,
            type_: ContractEventType::Diagnostic,
            body: ContractEventBody::V0(ContractEventV0 {
                topics: topics.try_into().unwrap_or_default(),
                data: ScVal::Void,
            }),
        },
    }
}
