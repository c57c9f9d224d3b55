//! The runtimes of callers, and which of them may be given tasks.

use std::cell::Cell;
use std::future::Future;

use tokio::runtime::{Handle, Id};
use tokio::task::coop;

thread_local! {
    /// The runtime that a blocking call on this thread keeps from running.
    static BLOCKED: Cell<Option<Id>> = const { Cell::new(None) };
}

/// Sets [`BLOCKED`] back when it is dropped.
struct Reset(Option<Id>);

impl Drop for Reset {
    fn drop(&mut self) {
        BLOCKED.set(self.0);
    }
}

/// Runs `future` to its end on this thread. If the thread belongs to a runtime, that gets no task from the future: its
/// only thread may be this one. The call is one poll to its runtime, so it must not use up the budget of one.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = Handle::try_current().ok().map(|runtime| runtime.id());
    let _reset = Reset(BLOCKED.replace(runtime));
    pollster::block_on(coop::unconstrained(future))
}

/// Returns the runtime that polls the caller, for tasks that the caller waits for. `None` outside of a runtime, and in a
/// [blocking](crate::blocking) call, which keeps its runtime from running.
pub fn callers_runtime() -> Option<Handle> {
    let runtime = Handle::try_current().ok()?;
    (BLOCKED.get() != Some(runtime.id())).then_some(runtime)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::runtime::Builder;

    use super::*;

    fn here() -> Option<Id> {
        callers_runtime().map(|runtime| runtime.id())
    }

    /// Tokio renews the budget of a task between two polls, and there is none until this call ends.
    #[test]
    fn blocking_call_uses_no_budget() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            block_on(poll_fn(|context| {
                for _ in 0..1_000 {
                    let budget = coop::poll_proceed(context);
                    assert!(budget.map(|budget| budget.made_progress()).is_ready());
                }
                Poll::Ready(())
            }));
        });
    }

    #[test]
    fn blocked_runtime_gets_no_tasks() {
        assert_eq!(here(), None, "without a runtime");
        let [outer, inner] = [(); 2].map(|()| Builder::new_current_thread().build().unwrap());
        let (outer_id, inner_id) = (outer.handle().id(), inner.handle().id());
        outer.block_on(async {
            assert_eq!(here(), Some(outer_id));
            assert_eq!(block_on(async { here() }), None);
            assert_eq!(here(), Some(outer_id), "afterwards");
        });
        let _entered = outer.enter();
        block_on(async {
            let _entered = inner.enter();
            assert_eq!(here(), Some(inner_id), "only the own runtime is blocked");
        });
    }
}
