//! Runs calls on a Python event loop, which watches the descriptor of [`EventLoop::fileno`].

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use leasehold::Error;
use leasehold_bridge::{BoxFuture, Calls, Signal, Started};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::answer::Answer;
use crate::errors::OrRaise;

/// The calls of one event loop.
#[pyclass(frozen, weakref, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct EventLoop {
    calls: Calls<Writer, Py<PyAny>, Answer>,
    reader: UnixStream,
}

#[derive(Debug)]
struct Writer(UnixStream);

impl Signal for Writer {
    fn signal(&self) {
        // A full buffer wakes the loop as well.
        let _ = (&self.0).write(&[1]);
    }
}

impl EventLoop {
    /// Polls `future` for the first time. `done`, an `asyncio.Future`, gets its answer.
    pub(crate) fn start(
        this: &Bound<'_, Self>,
        py: Python<'_>,
        future: BoxFuture<Answer>,
        done: Py<PyAny>,
    ) -> PyResult<Call> {
        let number = match this.get().calls.start(future, done) {
            Started::Pending(number) => Some(number),
            Started::Done(done, answer) => {
                complete(py, done.bind(py), answer)?;
                None
            }
        };
        Ok(Call {
            number,
            event_loop: this.clone().unbind(),
        })
    }
}

fn complete(
    py: Python<'_>,
    done: &Bound<'_, PyAny>,
    answer: Result<Answer, Error>,
) -> PyResult<()> {
    // Cancelled meanwhile. The answer is dropped, and a guard in it frees its lock.
    if done.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    match answer.or_raise().and_then(|answer| answer.into_python(py)) {
        Ok(answer) => done.call_method1(intern!(py, "set_result"), (answer,))?,
        Err(error) => done.call_method1(intern!(py, "set_exception"), (error,))?,
    };
    Ok(())
}

#[pymethods]
impl EventLoop {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self {
            calls: Calls::new(Writer(writer)),
            reader,
        })
    }

    /// Returns the descriptor that is readable once a call has an answer.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Returns how many calls are under way.
    fn __len__(&self) -> usize {
        self.calls.len()
    }

    /// Polls the calls that were woken.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        // One signal at a time is under way, so one read takes it.
        let _ = (&self.reader).read(&mut [0; 8]);
        self.calls
            .run(|done, answer| complete(py, done.bind(py), answer))
    }

    /// Drops all calls, which ends them at the store.
    fn clear(&self) {
        drop(self.calls.clear());
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.calls.visit(|done| visit.call(done))
    }

    fn __clear__(&self) {
        self.clear();
    }
}

/// A call that an event loop has begun.
#[pyclass(frozen, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct Call {
    /// `None` if it ended at once.
    number: Option<u64>,
    event_loop: Py<EventLoop>,
}

#[pymethods]
impl Call {
    /// Ends the call at the store.
    fn cancel(&self) {
        drop(
            self.number
                .and_then(|number| self.event_loop.get().calls.cancel(number)),
        );
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)
    }
}
