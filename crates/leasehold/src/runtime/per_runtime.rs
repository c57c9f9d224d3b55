use std::sync::{Arc, Mutex};

use tokio::runtime::{Handle, Id};

use super::caller_runtimes::CallerRuntimes;
use crate::env::locked;

/// A value for each runtime that polls callers, usually a connection. The runtime of the callers drives it, so no
/// thread has to wake another one for an answer. Other callers share the value of the client's background thread: those
/// without a runtime, and those whose runtime has not shown that it runs ([`CallerRuntimes`]).
#[derive(Debug)]
pub struct PerRuntime<T> {
    runtimes: CallerRuntimes,
    on_thread: Arc<T>,
    on_runtimes: Mutex<Vec<(Id, Arc<T>)>>,
}

/// The most runtimes with a value of their own.
const RUNTIMES_MAX: usize = 4;

impl<T> PerRuntime<T> {
    /// Begins with `on_thread`, the value of the client's background thread, whose runtime is `own`. Without one, it stays
    /// the only value.
    pub(crate) fn new(on_thread: Arc<T>, own: Option<Handle>) -> Self {
        let runtimes = CallerRuntimes::default();
        if let Some(own) = own {
            runtimes.serve_from(own);
        }
        Self {
            runtimes,
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
        let Some(runtime) = self.runtimes.runs() else {
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
    use tokio::runtime::Builder;
    use tokio::task::yield_now;

    use super::super::background::Background;
    use super::*;

    #[test]
    fn each_runtime_has_a_value_while_there_is_room() {
        let background = Background::start().unwrap();
        let values = PerRuntime::new(Arc::new(0), Some(background.handle().clone()));
        let here = |number, in_use| *values.here(|_| Arc::new(number), move |_| in_use);
        assert_eq!(here(9, true), 0, "without a runtime");
        let runtimes: Vec<_> = (1..=RUNTIMES_MAX + 1)
            .map(|number| {
                let runtime = Builder::new_current_thread().enable_all().build();
                (number, runtime.unwrap())
            })
            .collect();
        let (last, others) = runtimes.split_last().unwrap();
        let runs = async || {
            while values.runtimes.runs().is_none() {
                yield_now().await;
            }
        };
        for _ in 0..2 {
            for (number, runtime) in others {
                let here = async {
                    runs().await;
                    here(*number, true)
                };
                assert_eq!(runtime.block_on(here), *number);
            }
        }
        last.1.block_on(async {
            runs().await;
            assert_eq!(here(last.0, true), 0, "no room");
            assert_eq!(here(last.0, false), last.0);
        });
    }

    #[test]
    fn idle_runtime_has_no_value() {
        let background = Background::start().unwrap();
        let values = PerRuntime::new(Arc::new(0), Some(background.handle().clone()));
        let idle = Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = idle.enter();
        for _ in 0..3 {
            assert_eq!(*values.here(|_| Arc::new(1), |_| true), 0);
        }
    }
}
