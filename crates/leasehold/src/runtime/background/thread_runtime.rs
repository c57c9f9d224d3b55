use std::future::Future;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::types::{Error, ErrorKind};

/// The runtime of a thread of this library. Unlike tokio's it can be dropped within async code, for example
/// because its thread could not be started. Dropping it waits for nothing.
#[derive(Debug)]
pub struct ThreadRuntime {
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl ThreadRuntime {
    /// Returns a runtime that runs within [`block_on`](Self::block_on).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Closed`] if the system has no room for it, for example no descriptor.
    pub fn new() -> Result<Self, Error> {
        let built = Builder::new_current_thread().enable_all().build();
        let runtime = built.map_err(|error| {
            let text = "the background thread could not be started";
            Error::new(ErrorKind::Closed, text).with_source(error)
        })?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// Returns the handle of the runtime.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs `task` to its end on this thread.
    pub fn block_on<T>(&self, task: impl Future<Output = T>) -> T {
        match &self.runtime {
            Some(runtime) => runtime.block_on(task),
            None => self.handle.block_on(task),
        }
    }
}

impl Drop for ThreadRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn runtime_can_be_dropped_in_async_code() {
        drop(ThreadRuntime::new().unwrap());
    }
}
