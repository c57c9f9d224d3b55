use std::sync::{Arc, Mutex};

use tokio::runtime::{Handle, Id};

use super::background::callers_runtime;
use crate::env::locked;

/// A value for each runtime that polls callers, usually a connection. The runtime of the callers drives it, so no
/// thread has to wake another one for an answer. Callers without a runtime share the value of the client's background thread.
#[derive(Debug)]
pub struct PerRuntime<T> {
    on_thread: Arc<T>,
    on_runtimes: Mutex<Vec<(Id, Arc<T>)>>,
}

/// The most runtimes with a value of their own.
const RUNTIMES_MAX: usize = 4;

impl<T> PerRuntime<T> {
    /// Begins with `on_thread`, the value of the client's background thread.
    pub fn new(on_thread: Arc<T>) -> Self {
        Self {
            on_thread,
            on_runtimes: Mutex::default(),
        }
    }

    /// Returns the value of the runtime that polls the caller; `open` makes it if it is the first caller there.
    ///
    /// If several runtimes have a value already, those whose value is not in use are forgotten, and a runtime for which there is
    /// no room shares the value of the background thread.
    pub fn here(
        &self,
        open: impl FnOnce(Handle) -> Arc<T>,
        is_in_use: impl Fn(&T) -> bool,
    ) -> Arc<T> {
        let Some(runtime) = callers_runtime() else {
            return Arc::clone(&self.on_thread);
        };
        let mut values = locked(&self.on_runtimes);
        let id = runtime.id();
        if let Some((_, value)) = values.iter().find(|(of, _)| *of == id) {
            return Arc::clone(value);
        }
        if values.len() >= RUNTIMES_MAX {
            // The connections of runtimes that have ended are closed.
            values.retain(|(_, value)| is_in_use(value));
        }
        if values.len() >= RUNTIMES_MAX {
            return Arc::clone(&self.on_thread);
        }
        let value = open(runtime);
        values.push((id, Arc::clone(&value)));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    #[test]
    fn each_runtime_has_a_value_while_there_is_room() {
        let values = PerRuntime::new(Arc::new(0));
        let here = |number, in_use| *values.here(|_| Arc::new(number), move |_| in_use);
        assert_eq!(here(9, true), 0, "without a runtime");
        let runtimes: Vec<_> = (1..=RUNTIMES_MAX + 1)
            .map(|number| (number, Builder::new_current_thread().build().unwrap()))
            .collect();
        let (last, others) = runtimes.split_last().unwrap();
        for _ in 0..2 {
            for (number, runtime) in others {
                assert_eq!(runtime.block_on(async { here(*number, true) }), *number);
            }
        }
        assert_eq!(last.1.block_on(async { here(last.0, true) }), 0, "no room");
        assert_eq!(last.1.block_on(async { here(last.0, false) }), last.0);
    }
}
