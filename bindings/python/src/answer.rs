//! What calls return to Python.

use leasehold::{Error, ErrorKind};
use leasehold_bridge::{BoxFuture, Held, OnceFields, OnceStep};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pythonize::pythonize;
use serde_json::Value;

use crate::guard::Guard;

/// The answer of a call.
#[derive(Debug)]
pub(crate) enum Answer {
    Held(Option<Held>),
    /// A tuple of the state and what belongs to it.
    Step(OnceStep),
    Result(Option<OnceFields>),
    Value(Value),
}

impl Answer {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Held(held) => held.map(Guard::from).into_py_any(py),
            Self::Step(OnceStep::Run(held)) => ("run", Guard::from(held)).into_py_any(py),
            Self::Step(OnceStep::Done(done)) => ("done", result(py, &done)?).into_py_any(py),
            Self::Step(OnceStep::InProgress(holder)) => {
                ("in_progress", pythonize(py, &holder)?).into_py_any(py)
            }
            Self::Result(done) => done
                .map(|done| result(py, &done))
                .transpose()?
                .into_py_any(py),
            Self::Value(value) => Ok(pythonize(py, &value)?.unbind()),
        }
    }
}

/// Makes an answer of a future of plain values.
pub(crate) async fn value<T: serde::Serialize>(future: BoxFuture<T>) -> Result<Answer, Error> {
    let value = serde_json::to_value(future.await?);
    let unreadable = |error: serde_json::Error| {
        Error::new(
            ErrorKind::InvalidResponse,
            "the answer has no form in Python",
        )
        .with_source(error)
    };
    value.map(Answer::Value).map_err(unreadable)
}

fn result(py: Python<'_>, done: &OnceFields) -> PyResult<Py<PyAny>> {
    (PyBytes::new(py, &done.bytes), done.fence, done.remaining).into_py_any(py)
}
