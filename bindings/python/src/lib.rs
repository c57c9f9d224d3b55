//! The native part of the Python package: clients, guards, and the calls of an event loop. What users see is Python.

mod answer;
mod client;
mod errors;
mod event_loop;
mod guard;
mod operation;
mod wait;

use pyo3::prelude::*;

#[pymodule]
mod _leasehold {
    #[pymodule_export]
    use crate::client::{Client, Election, Once, Request, Watch};
    #[pymodule_export]
    use crate::event_loop::{Call, EventLoop};
    #[pymodule_export]
    use crate::guard::Guard;
    #[pymodule_export]
    use crate::operation::Operation;
    #[pymodule_export]
    use crate::wait::{end_in_this_thread, wait_for_other_threads};
}
