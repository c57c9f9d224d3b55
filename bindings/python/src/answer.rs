//! What calls return to Python.

use leasehold::{Error, ErrorKind};
use leasehold_bridge::{BoxFuture, Held, OnceFields, OnceStep};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
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
                ("in_progress", to_python(py, &holder)?).into_py_any(py)
            }
            Self::Result(done) => done
                .map(|done| result(py, &done))
                .transpose()?
                .into_py_any(py),
            Self::Value(value) => from_json(py, &value),
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

/// Returns a plain value as dictionaries, lists, texts and numbers.
pub(crate) fn to_python(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<Py<PyAny>> {
    let value = serde_json::to_value(value);
    from_json(
        py,
        &value.map_err(|error| PyValueError::new_err(error.to_string()))?,
    )
}

fn from_json(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Null => Ok(py.None()),
        Value::Bool(flag) => flag.into_py_any(py),
        Value::Number(number) => match number.as_u64() {
            Some(number) => number.into_py_any(py),
            None => number.as_f64().into_py_any(py),
        },
        Value::String(text) => text.into_py_any(py),
        Value::Array(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(from_json(py, value)?)?;
            }
            list.into_py_any(py)
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, from_json(py, value)?)?;
            }
            dict.into_py_any(py)
        }
    }
}
