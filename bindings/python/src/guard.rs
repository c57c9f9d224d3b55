//! A held lock.

use leasehold_bridge::{Held, span};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::answer::Answer;
use crate::errors::OrRaise;
use crate::operation::Operation;

/// A lock, a set of locks, a run or a leadership, until it is released.
#[pyclass(frozen, weakref, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct Guard(Held);

impl From<Held> for Guard {
    fn from(held: Held) -> Self {
        Self(held)
    }
}

#[pymethods]
impl Guard {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn fence(&self) -> u64 {
        self.0.fence()
    }

    #[getter]
    fn owner(&self) -> &str {
        self.0.owner()
    }

    #[getter]
    fn fences<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fences = PyDict::new(py);
        for (name, fence) in self.0.fences() {
            fences.set_item(name, fence)?;
        }
        Ok(fences)
    }

    #[getter]
    fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    #[getter]
    fn is_released(&self) -> bool {
        self.0.is_released()
    }

    #[getter]
    fn remaining(&self) -> f64 {
        self.0.remaining_seconds()
    }

    #[getter]
    fn lost_reason(&self) -> Option<&'static str> {
        self.0.lost_reason()
    }

    fn ensure(&self, seconds: f64) -> PyResult<()> {
        span(seconds)
            .and_then(|span| self.0.ensure(span))
            .or_raise()
    }

    fn reenter(&self) -> PyResult<Self> {
        self.0.reenter().map(Self).or_raise()
    }

    fn give_up(&self) {
        self.0.give_up();
    }

    /// Releases in the background, without waiting.
    fn discard(&self) {
        self.0.discard();
    }

    fn handle(&self) -> PyResult<String> {
        self.0.handle().or_raise()
    }

    fn detach(&self) -> PyResult<String> {
        self.0.into_handle().or_raise()
    }

    fn release(&self) -> PyResult<Operation> {
        self.0.release().map(Operation::value).or_raise()
    }

    fn ended(&self) -> PyResult<Operation> {
        self.0.ended().map(Operation::value).or_raise()
    }

    fn renew(&self) -> PyResult<Operation> {
        self.0.renew().map(Operation::value).or_raise()
    }

    fn downgrade(&self) -> PyResult<Operation> {
        self.0.downgrade().map(Operation::value).or_raise()
    }

    fn commit(&self, result: Vec<u8>) -> PyResult<Operation> {
        let commit = self.0.commit(result).or_raise()?;
        Ok(Operation::new(commit, |done| Answer::Result(Some(done))))
    }

    fn publish(&self, value: String) -> PyResult<Operation> {
        self.0.publish(value).map(Operation::value).or_raise()
    }

    fn keep_announced(&self) -> PyResult<Operation> {
        self.0.keep_announced().map(Operation::value).or_raise()
    }
}
