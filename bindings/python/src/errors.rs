//! Errors of the core as exceptions, whose classes are in `leasehold.errors`.

use leasehold::Error;
use leasehold_bridge::ErrorFields;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pythonize::pythonize;

use crate::wait::park_if_ending;

static FROM_FIELDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns the exception for `error`.
pub(crate) fn exception(error: &Error) -> PyErr {
    Python::attach(|py| make(py, error).unwrap_or_else(|failed| failed))
}

fn make(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    py.detach(park_if_ending);
    let from_fields = FROM_FIELDS.get_or_try_init(py, || {
        let errors = py.import("leasehold.errors")?;
        errors.getattr("from_fields").map(Bound::unbind)
    })?;
    let fields = pythonize(py, &ErrorFields::from(error))?;
    let exception = from_fields.bind(py).call1((fields,))?;
    Ok(PyErr::from_value(exception))
}

/// Turns errors of the core into exceptions.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
