//! The one exception of this module, and how the host's errors become it.

use pyo3::{create_exception, exceptions::PyException, PyErr};
use soroban_env_host::{
    xdr::{ScErrorCode, ScErrorType},
    HostError as SorobanError,
};

create_exception!(
    mycelium_localnet._native,
    HostError,
    PyException,
    "The host was handed something it cannot work with, or failed inside. Never a contract's own failure."
);

/// A `HostError` exception with this message.
pub fn host_error(message: impl Into<String>) -> PyErr {
    HostError::new_err(message.into())
}

/// A failure of the host itself as an exception.
pub fn from_soroban(what: &str, error: &SorobanError) -> PyErr {
    host_error(format!("{what}: {:?}", error.error))
}

/// Whether an error means that the host or its embedder is at fault, not the transaction.
///
/// The network draws the line here too: such an error makes a transaction fail as txINTERNAL_ERROR.
pub fn is_internal(error: &SorobanError) -> bool {
    error.error.is_code(ScErrorCode::InternalError) && !error.error.is_type(ScErrorType::Contract)
}
