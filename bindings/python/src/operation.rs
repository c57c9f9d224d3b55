//! A call that has not begun: it is either waited for, or given to an event loop.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use leasehold_bridge::BoxFuture;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::answer::{Answer, value};
use crate::event_loop::{Call, EventLoop};
use crate::wait::wait;

/// A call of the core.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub(crate) struct Operation(Mutex<Option<BoxFuture<Answer>>>);

impl Operation {
    /// Returns a call, whose answer Python gets as `answer`.
    pub(crate) fn new<T: 'static>(
        future: BoxFuture<T>,
        answer: impl FnOnce(T) -> Answer + Send + 'static,
    ) -> Self {
        Self::of(Box::pin(async move { future.await.map(answer) }))
    }

    /// Returns a call whose answer is a plain value.
    pub(crate) fn value<T: serde::Serialize + 'static>(future: BoxFuture<T>) -> Self {
        Self::of(Box::pin(value(future)))
    }

    fn of(future: BoxFuture<Answer>) -> Self {
        Self(Mutex::new(Some(future)))
    }

    fn take(&self) -> PyResult<BoxFuture<Answer>> {
        let mut future = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        future
            .take()
            .ok_or_else(|| PyRuntimeError::new_err("the call has begun before"))
    }
}

#[pymethods]
impl Operation {
    /// Blocks until the answer is here. A signal handler that raises, as that of Ctrl-C does, cancels the call.
    fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        wait(py, self.take()?)?.into_python(py)
    }

    /// Begins the call. Its answer completes `future`, maybe at once.
    fn start(
        &self,
        py: Python<'_>,
        event_loop: &Bound<'_, EventLoop>,
        future: Py<PyAny>,
    ) -> PyResult<Call> {
        EventLoop::start(event_loop, py, self.take()?, future)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operation")
    }
}
