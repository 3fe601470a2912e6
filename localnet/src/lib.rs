//! The network's own Soroban host over bytes, as the Python module `mycelium_localnet._native`.
//!
//! Stateless: every call gets what it needs as XDR bytes and gives back what changed. The Python face, with the
//! shapes and units of everything, is `python/mycelium_localnet/_native.pyi`.

mod error;
mod fees;
mod footprint;
mod invoke;
mod modules;
mod settings;
mod simulate;
mod simulation;
mod snapshot;
mod worker;
mod xdr;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("PROTOCOL_VERSION", settings::PROTOCOL_VERSION)?;
    module.add("HostError", module.py().get_type::<error::HostError>())?;
    module.add_class::<settings::NetworkSettings>()?;
    module.add_class::<settings::LedgerInfo>()?;
    module.add_class::<modules::ModuleCache>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<simulation::StateChange>()?;
    module.add_class::<invoke::Invocation>()?;
    module.add_class::<invoke::Change>()?;
    module.add_function(wrap_pyfunction!(simulate::simulate_invoke, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate_extend_ttl, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate_restore, module)?)?;
    module.add_function(wrap_pyfunction!(invoke::invoke, module)?)?;
    module.add_function(wrap_pyfunction!(fees::entry_size_for_rent, module)?)?;
    module.add_function(wrap_pyfunction!(fees::transaction_resource_fee, module)?)?;
    module.add_function(wrap_pyfunction!(fees::rent_fee, module)?)?;
    Ok(())
}
