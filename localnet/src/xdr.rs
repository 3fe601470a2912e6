//! Decoding and encoding of XDR at the border to Python.

use crate::error::host_error;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyList},
};
use soroban_env_host::{
    xdr::{Limits, ReadXdr, WriteXdr},
    DEFAULT_XDR_RW_LIMITS,
};

/// Decodes all of `bytes`, or says in an exception what did not decode.
pub fn decode<T: ReadXdr>(what: &str, bytes: &[u8]) -> PyResult<T> {
    let limits = Limits {
        depth: DEFAULT_XDR_RW_LIMITS.depth,
        len: bytes.len(),
    };
    T::from_xdr(bytes, limits)
        .map_err(|error| host_error(format!("{what} does not decode: {error}")))
}

/// Encodes a value that the host made.
pub fn encode(value: &impl WriteXdr) -> PyResult<Vec<u8>> {
    value
        .to_xdr(DEFAULT_XDR_RW_LIMITS)
        .map_err(|error| host_error(format!("a result does not encode: {error}")))
}

/// Encodes each of several values that the host made.
pub fn encode_all<T: WriteXdr>(values: &[T]) -> PyResult<Vec<Vec<u8>>> {
    values.iter().map(encode).collect()
}

/// A Python list of `bytes`.
pub fn bytes_list<'py>(py: Python<'py>, items: &[Vec<u8>]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, items.iter().map(|item| PyBytes::new(py, item)))
}
