//! What the commands wait with: a runtime, and the signals of the process.

pub(crate) mod signals;

use tokio::runtime::Runtime;

use crate::output::failure::Failure;

/// A runtime for the waits of the program; the thread of the client polls the store.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of("cannot start a runtime", &error))
}
