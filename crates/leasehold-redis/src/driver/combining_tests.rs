//! All orders in which callers, the reader and the client's thread can reach the driver.

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(super) use loom::sync::{Mutex, MutexGuard};
    pub(super) use std::sync::{PoisonError, TryLockError};
}
#[path = "combining.rs"]
mod combining;

use leasehold_quorum::Operation;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

use self::combining::Combining;
use self::sync::{Mutex, MutexGuard};
use super::submissions::{Submission, Submissions};

/// The parts of the driver that threads share.
struct Model {
    submissions: Mutex<Submissions>,
    /// Whether bytes arrived that the state has not taken in.
    is_unread: Mutex<bool>,
    state: Combining<Taken>,
}

/// What the state took in.
#[derive(Default)]
struct Taken {
    submissions: Vec<Submission>,
    reads: usize,
}

impl Model {
    fn new() -> Self {
        Self {
            submissions: Mutex::new(Submissions::new()),
            is_unread: Mutex::new(false),
            state: Combining::new(Taken::default()),
        }
    }

    fn take_in(&self, mut state: MutexGuard<'_, Taken>) {
        state.reads += usize::from(std::mem::take(&mut *self.is_unread.lock().unwrap()));
        let mut taken = Vec::new();
        self.submissions.lock().unwrap().take(&mut taken);
        state.submissions.append(&mut taken);
    }

    fn advance(&self) {
        self.state.work(|state| self.take_in(state));
    }

    fn submit(&self) {
        let submitted = self.submissions.lock().unwrap().start(Operation::Health);
        assert!(submitted.is_some());
        self.advance();
    }

    fn read(&self) {
        *self.is_unread.lock().unwrap() = true;
        self.advance();
    }

    /// Looks at the state and changes nothing, as the client's thread does.
    fn look(&self) -> bool {
        let look = |state: MutexGuard<'_, Taken>| {
            state.reads == 0 && self.submissions.lock().unwrap().is_empty()
        };
        self.state.with(look, |state| self.take_in(state))
    }
}

#[test]
fn nothing_waits_while_no_thread_has_the_state() {
    let mut all = Builder::new();
    all.preemption_bound = Some(3);
    all.check(|| {
        let model = Arc::new(Model::new());
        let uses = [Model::submit, Model::read];
        let threads = uses.map(|step| {
            let model = Arc::clone(&model);
            thread::spawn(move || step(&model))
        });
        model.look();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let (read, submitted) = model.state.with(
            |state| (state.reads, state.submissions.len()),
            |_| panic!("work was left"),
        );
        assert_eq!((read, submitted), (1, 1));
    });
}
