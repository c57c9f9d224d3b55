use std::sync::{Arc, Mutex};

use tokio::runtime::{Handle, Id};

use super::SessionContext;
use crate::env::clock::Clock;
use crate::env::locked;
use crate::runtime::caller_runtimes::CallerRuntimes;

/// A value for each runtime that polls callers, usually a connection. The runtime of the callers drives it, so no
/// thread has to wake another one for an answer. Callers without a runtime that runs share the value of the client's
/// background thread.
#[derive(Debug)]
pub struct PerRuntime<T> {
    clock: Arc<dyn Clock>,
    callers: CallerRuntimes,
    on_thread: Arc<T>,
    on_runtimes: Mutex<Vec<(Id, Arc<T>)>>,
}

/// The most runtimes with a value of their own.
const RUNTIMES_MAX: usize = 4;

impl<T> PerRuntime<T> {
    /// Begins with `on_thread`, the value of the client's background thread.
    pub fn new(on_thread: Arc<T>, context: &SessionContext) -> Self {
        let callers = CallerRuntimes::default();
        if let Some(own) = context.runtime() {
            callers.serve_from(own.clone());
        }
        Self {
            clock: Arc::clone(&context.env().clock),
            callers,
            on_thread,
            on_runtimes: Mutex::default(),
        }
    }

    /// Returns the value of the runtime that polls the caller, if that runs; `open` makes it if it is the first caller there.
    ///
    /// If several runtimes have a value already, those whose value is not in use are forgotten, and a runtime for which there is
    /// no room shares the value of the background thread.
    pub async fn here(
        &self,
        open: impl FnOnce(Handle) -> Arc<T>,
        is_in_use: impl Fn(&T) -> bool,
    ) -> Arc<T> {
        let Some(runtime) = self.callers.running(&*self.clock).await else {
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

    use super::*;
    use crate::env::Env;
    use crate::runtime::background::{Background, block_on};

    #[test]
    fn each_runtime_has_a_value_while_there_is_room() {
        let background = Background::start().unwrap();
        let env = Env::default();
        let client = Arc::new(env.this_process(None));
        let context = SessionContext::new(env, client, background.handle().clone());
        let values = PerRuntime::new(Arc::new(0), &context);
        let here = async |number, in_use| *values.here(|_| Arc::new(number), move |_| in_use).await;
        assert_eq!(block_on(here(9, true)), 0, "without a runtime");
        let runtimes: Vec<_> = (1..=RUNTIMES_MAX + 1)
            .map(|number| {
                let runtime = Builder::new_current_thread().enable_all().build();
                (number, runtime.unwrap())
            })
            .collect();
        let (last, others) = runtimes.split_last().unwrap();
        for _ in 0..2 {
            for (number, runtime) in others {
                assert_eq!(runtime.block_on(here(*number, true)), *number);
            }
        }
        assert_eq!(last.1.block_on(here(last.0, true)), 0, "no room");
        assert_eq!(last.1.block_on(here(last.0, false)), last.0);
    }
}
