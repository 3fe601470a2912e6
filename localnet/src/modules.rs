//! Compiled contract code, kept between invocations.

use crate::error::from_soroban;
use pyo3::prelude::*;
use soroban_env_host::{
    budget::{AsBudget, Budget},
    xdr::{ContractCostParams, Hash},
    CompilationContext, Error, ErrorHandler, HostError, ModuleCache as HostModules, Val,
};
use std::{
    fmt::Debug,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// Above this many modules everything is forgotten: the engine keeps the code of removed modules too.
const MAX_MODULES: usize = 256;

/// Compiled contract code, found by its hash and shared between calls and threads.
#[pyclass(frozen, module = "mycelium_localnet._native")]
pub struct ModuleCache {
    held: RwLock<Held>,
}

/// Modules and how many there are.
pub struct Held {
    pub modules: HostModules,
    count: usize,
}

#[pymethods]
impl ModuleCache {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self {
            held: RwLock::new(Held::new()?),
        })
    }

    /// A property, not `len()`: an empty cache must not be falsy.
    #[getter]
    fn module_count(&self) -> usize {
        self.read().count
    }
}

impl ModuleCache {
    /// The cache with all of `codes` (hash and wasm) compiled, for as long as the guard is held.
    ///
    /// The engine spins while a module is added during a run on another thread; this lock makes it wait instead.
    pub fn with<'cache>(
        &'cache self,
        codes: &[(Hash, &[u8])],
    ) -> PyResult<RwLockReadGuard<'cache, Held>> {
        let held = self.read();
        if held.lacking(codes) == 0 {
            return Ok(held);
        }
        drop(held);
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.count + held.lacking(codes) > MAX_MODULES {
            *held = Held::new()?;
        }
        held.compile(codes);
        Ok(RwLockWriteGuard::downgrade(held))
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    pub fn new() -> PyResult<Self> {
        let modules = Compilation::new()
            .and_then(|context| HostModules::new(&context))
            .map_err(|error| from_soroban("cannot make a module cache", &error))?;
        Ok(Self { modules, count: 0 })
    }

    /// Compiles what is not held yet. Code that does not compile is left out: the host meets it again and says why.
    pub fn compile(&mut self, codes: &[(Hash, &[u8])]) {
        let Ok(context) = Compilation::new() else {
            return;
        };
        for (hash, wasm) in codes {
            if self.holds(hash) {
                continue;
            }
            let compiled = self.modules.parse_and_cache_module_simple(
                &context,
                crate::settings::PROTOCOL_VERSION,
                wasm,
            );
            if compiled.is_ok() {
                self.count += 1;
            }
        }
    }

    fn lacking(&self, codes: &[(Hash, &[u8])]) -> usize {
        codes.iter().filter(|(hash, _)| !self.holds(hash)).count()
    }

    fn holds(&self, hash: &Hash) -> bool {
        self.modules.contains_module(hash).unwrap_or(false)
    }
}

/// Compiles outside of any transaction: nobody is charged, and no host hears of errors.
#[derive(Clone)]
struct Compilation {
    budget: Budget,
}

impl Compilation {
    fn new() -> Result<Self, HostError> {
        // Without cost parameters nothing is metered; the engine's fuel costs are the host's own constants.
        let free = ContractCostParams(Default::default());
        let budget = Budget::try_from_configs(u64::MAX, u64::MAX, free.clone(), free)?;
        Ok(Self { budget })
    }
}

impl AsBudget for Compilation {
    fn as_budget(&self) -> &Budget {
        &self.budget
    }
}

impl ErrorHandler for Compilation {
    fn map_err<T, E>(&self, result: Result<T, E>) -> Result<T, HostError>
    where
        Error: From<E>,
        E: Debug,
    {
        result.map_err(HostError::from)
    }

    fn error(&self, error: Error, _message: &str, _args: &[Val]) -> HostError {
        HostError::from(error)
    }
}

impl CompilationContext for Compilation {}
