//! Simulations: what an operation would do, need and cost, quoted as the network's RPC quotes it.

use crate::{
    settings::{array32, LedgerInfo},
    simulation::Simulation,
    snapshot::Snapshot,
    worker::run_with_lookup,
    xdr::decode,
};
use pyo3::{exceptions::PyValueError, prelude::*, pybacked::PyBackedBytes};
use soroban_env_host::{
    e2e_invoke::RecordingInvocationAuthMode,
    xdr::{AccountId, HostFunction, LedgerKey, SorobanAuthorizationEntry},
};
use soroban_simulation::{
    simulation::{
        simulate_extend_ttl_op, simulate_invoke_host_function_op, simulate_restore_op,
        SimulationAdjustmentConfig,
    },
    AutoRestoringSnapshotSource,
};
use std::{fmt::Display, rc::Rc};

/// How authorization is treated, before its entries are decoded.
enum AuthMode {
    Enforce,
    Record { allow_nonroot: bool },
}

impl AuthMode {
    fn parse(name: &str) -> PyResult<Self> {
        match name {
            "enforce" => Ok(Self::Enforce),
            "record" => Ok(Self::Record {
                allow_nonroot: false,
            }),
            "record_allow_nonroot" => Ok(Self::Record {
                allow_nonroot: true,
            }),
            _ => Err(PyValueError::new_err(format!(
                "auth_mode must be enforce, record or record_allow_nonroot, not {name:?}"
            ))),
        }
    }

    fn with(
        self,
        entries: &[PyBackedBytes],
        upgraded: bool,
    ) -> PyResult<RecordingInvocationAuthMode> {
        Ok(match self {
            Self::Enforce => RecordingInvocationAuthMode::Enforcing(
                entries
                    .iter()
                    .map(|entry| {
                        decode::<SorobanAuthorizationEntry>(
                            "an auth entry (SorobanAuthorizationEntry)",
                            entry,
                        )
                    })
                    .collect::<PyResult<_>>()?,
            ),
            Self::Record { allow_nonroot } => {
                RecordingInvocationAuthMode::recording(!allow_nonroot, upgraded)
            }
        })
    }
}

/// Run a host function in recording mode and quote its resources and fee.
#[pyfunction]
#[pyo3(
    signature = (*, ledger, get, host_function, auth=Vec::new(), auth_mode, upgraded_auth=false, source_account, prng_seed, instruction_leeway=0),
    text_signature = "(*, ledger, get, host_function, auth=(), auth_mode, upgraded_auth=False, source_account, prng_seed, instruction_leeway=0)"
)]
#[allow(clippy::too_many_arguments)]
pub fn simulate_invoke(
    py: Python<'_>,
    ledger: &Bound<'_, LedgerInfo>,
    get: Py<PyAny>,
    host_function: PyBackedBytes,
    auth: Vec<PyBackedBytes>,
    auth_mode: &str,
    upgraded_auth: bool,
    source_account: PyBackedBytes,
    prng_seed: PyBackedBytes,
    instruction_leeway: u32,
) -> PyResult<Simulation> {
    let ledger = ledger.get();
    let auth_mode = AuthMode::parse(auth_mode)?;
    let prng_seed = array32("prng_seed", &prng_seed)?;
    run_with_lookup(py, &get, |lookup| {
        let host_function: HostFunction = decode("host_function (HostFunction)", &host_function)?;
        let source_account: AccountId = decode("source_account (AccountId)", &source_account)?;
        let auth_mode = auth_mode.with(&auth, upgraded_auth)?;
        let mut adjustment = SimulationAdjustmentConfig::default_adjustment();
        adjustment.instructions.additive_factor = adjustment
            .instructions
            .additive_factor
            .max(instruction_leeway);
        let snapshot = Rc::new(Snapshot::new(lookup, ledger.host.sequence_number));
        let found = simulate_invoke_host_function_op(
            snapshot.clone(),
            &ledger.network().config,
            &adjustment,
            &ledger.host,
            host_function,
            auth_mode,
            &source_account,
            prng_seed,
            true,
        );
        snapshot.check()?;
        match found {
            Ok(found) => Simulation::of_invocation(&found),
            Err(error) => Ok(Simulation::failed(describe(&error))),
        }
    })
}

/// Quote an ExtendFootprintTTL of keys to a number of ledgers from now.
#[pyfunction]
#[pyo3(signature = (*, ledger, get, keys, extend_to))]
pub fn simulate_extend_ttl(
    py: Python<'_>,
    ledger: &Bound<'_, LedgerInfo>,
    get: Py<PyAny>,
    keys: Vec<PyBackedBytes>,
    extend_to: u32,
) -> PyResult<Simulation> {
    let ledger = ledger.get();
    run_with_lookup(py, &get, |lookup| {
        let keys = decode_keys(&keys)?;
        let config = &ledger.network().config;
        let adjustment = SimulationAdjustmentConfig::default_adjustment();
        let snapshot = Rc::new(Snapshot::new(lookup, ledger.host.sequence_number));
        // Archived entries are quoted as if restored, with the restoration as a preamble.
        let quotes = AutoRestoringSnapshotSource::new(snapshot.clone(), &ledger.host).and_then(
            |restoring| {
                let extension = simulate_extend_ttl_op(
                    &restoring,
                    config,
                    &adjustment,
                    &ledger.host,
                    &keys,
                    extend_to,
                )?;
                let restoration =
                    restoring.simulate_restore_keys_op(config, &adjustment, &ledger.host)?;
                Ok((extension, restoration))
            },
        );
        snapshot.check()?;
        match quotes {
            Ok((extension, restoration)) => Simulation::quoted(
                &extension.transaction_data,
                restoration.as_ref().map(|found| &found.transaction_data),
            ),
            Err(error) => Ok(Simulation::failed(describe(&error))),
        }
    })
}

/// Quote a RestoreFootprint of keys.
#[pyfunction]
#[pyo3(signature = (*, ledger, get, keys))]
pub fn simulate_restore(
    py: Python<'_>,
    ledger: &Bound<'_, LedgerInfo>,
    get: Py<PyAny>,
    keys: Vec<PyBackedBytes>,
) -> PyResult<Simulation> {
    let ledger = ledger.get();
    run_with_lookup(py, &get, |lookup| {
        let keys = decode_keys(&keys)?;
        let snapshot = Snapshot::new(lookup, ledger.host.sequence_number);
        let quote = simulate_restore_op(
            &snapshot,
            &ledger.network().config,
            &SimulationAdjustmentConfig::default_adjustment(),
            &ledger.host,
            &keys,
        );
        snapshot.check()?;
        match quote {
            Ok(found) => Simulation::quoted(&found.transaction_data, None),
            Err(error) => Ok(Simulation::failed(describe(&error))),
        }
    })
}

/// An error and its causes in words, without the backtrace that the environment may ask for.
fn describe(error: &impl Display) -> String {
    format!("{error:#}")
}

fn decode_keys(keys: &[PyBackedBytes]) -> PyResult<Vec<LedgerKey>> {
    keys.iter()
        .map(|key| decode("a key (LedgerKey)", key))
        .collect()
}
