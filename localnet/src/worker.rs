//! Runs the host on a thread of its own, and answers its ledger lookups on the caller's thread.
//!
//! The host recurses deeply (nested calls, nested values), so it needs a stack larger than a Python thread may have.
//! Lookups go back to the caller's thread because Python code expects that (SQLite connections, context variables).

use crate::error::host_error;
use pyo3::{prelude::*, pybacked::PyBackedBytes, types::PyBytes};
use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    sync::{
        mpsc::{sync_channel, Receiver, SyncSender},
        Once,
    },
    thread::{self, Scope, ScopedJoinHandle},
};

const THREAD_NAME: &str = "soroban-host";

/// Address space only: pages are taken when they are touched.
const STACK_BYTES: usize = 100 << 20;

thread_local! {
    /// What the panic hook was told on this thread.
    static PANIC: Cell<Option<String>> = const { Cell::new(None) };
}

/// A ledger entry as the caller gave it: XDR, and the ledger it lives until.
pub type Found = Option<(Vec<u8>, Option<u32>)>;

/// The caller's `get` failed; what it raised is kept on the caller's side.
pub struct LookupFailed;

/// The host's end of the line to the caller's `get`.
pub struct Lookup {
    ask: SyncSender<Vec<u8>>,
    answer: Receiver<Result<Found, LookupFailed>>,
}

impl Lookup {
    pub fn get(&self, key: Vec<u8>) -> Result<Found, LookupFailed> {
        self.ask.send(key).map_err(|_| LookupFailed)?;
        self.answer.recv().map_err(|_| LookupFailed)?
    }
}

/// Runs `job` on a host thread with the GIL released. A panic in it becomes a HostError.
pub fn run<T: Send>(py: Python<'_>, job: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    py.detach(|| thread::scope(|scope| outcome(spawn(scope, job)?)))
}

/// Like `run`, with lookups answered by the Python callable `get`. What `get` raises wins over the job's outcome.
pub fn run_with_lookup<T: Send>(
    py: Python<'_>,
    get: &Py<PyAny>,
    job: impl FnOnce(Lookup) -> PyResult<T> + Send,
) -> PyResult<T> {
    py.detach(|| {
        thread::scope(|scope| {
            let (ask, asked) = sync_channel(1);
            let (reply, answer) = sync_channel(1);
            let host = spawn(scope, move || job(Lookup { ask, answer }))?;
            let mut raised = None;
            // Ends when the job is done with its Lookup, in whichever way.
            for key in asked {
                let found = match raised {
                    None => call(get, &key).map_err(|error| {
                        raised = Some(error);
                        LookupFailed
                    }),
                    Some(_) => Err(LookupFailed),
                };
                if reply.send(found).is_err() {
                    break;
                }
            }
            let outcome = outcome(host);
            raised.map_or(outcome, Err)
        })
    })
}

fn call(get: &Py<PyAny>, key: &[u8]) -> PyResult<Found> {
    Python::attach(|py| {
        py.check_signals()?;
        let found: Option<(PyBackedBytes, Option<u32>)> =
            get.call1(py, (PyBytes::new(py, key),))?.extract(py)?;
        Ok(found.map(|(entry, live_until)| (entry.to_vec(), live_until)))
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    job: impl FnOnce() -> PyResult<T> + Send + 'scope,
) -> PyResult<ScopedJoinHandle<'scope, PyResult<T>>> {
    thread::Builder::new()
        .name(THREAD_NAME.to_owned())
        .stack_size(STACK_BYTES)
        .spawn_scoped(scope, move || catch_panic(job))
        .map_err(|error| host_error(format!("cannot start a thread for the host: {error}")))
}

fn outcome<T>(host: ScopedJoinHandle<'_, PyResult<T>>) -> PyResult<T> {
    host.join()
        .unwrap_or_else(|_| Err(host_error("the host panicked while it was ending")))
}

/// Runs `job` so that a panic in it is an exception that says what and where, and nothing on standard error.
fn catch_panic<T>(job: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().name() == Some(THREAD_NAME) {
                PANIC.set(Some(describe(info)));
            } else {
                previous(info);
            }
        }));
    });
    panic::catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| {
        let what = PANIC.take().unwrap_or_default();
        Err(host_error(format!("the host panicked: {what}")))
    })
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("no message");
    let Some(place) = info.location() else {
        return what.to_owned();
    };
    let file = place.file().rsplit('/').next().unwrap_or_default();
    format!("{what} ({file}:{})", place.line())
}
