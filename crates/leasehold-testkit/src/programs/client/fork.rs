//! Fork: the child has copies of the client and its guards, and may use none.

use std::time::Duration;

use futures_util::FutureExt as _;
use leasehold::{Client, Error, ErrorKind, Guard, LostReason};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};

use super::Task;
use crate::programs::history::{HoldNumber, What};

/// A child that takes longer hangs, and SIGALRM ends it.
const CHILD_SECONDS: u32 = 10;

impl Task<'_> {
    /// Forks, and waits until the child has ended.
    #[expect(
        unsafe_code,
        reason = "fork itself, and the end of a child that must not run the end of its parent"
    )]
    pub(super) fn fork(&mut self) {
        self.note(What::Forked);
        // SAFETY: the child uses its copy of the memory, which no other thread of it can change, and leaves by _exit.
        match unsafe { fork() }.expect("a child") {
            ForkResult::Child => {
                alarm::set(CHILD_SECONDS);
                let guards = std::mem::take(&mut self.guards);
                let wrong = use_in_child(self.client(), guards);
                // SAFETY: ends the child alone.
                unsafe { nix::libc::_exit(wrong) }
            }
            ForkResult::Parent { child } => match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, 0)) => {}
                status => self.note(What::Failed {
                    call: "fork".into(),
                    is_unexpected: true,
                    text: format!("the child ended with {status:?}"),
                }),
            },
        }
    }
}

/// Returns the number of the first call that a forked child should not have got, or 0.
fn use_in_child(client: Client, guards: Vec<(HoldNumber, Guard)>) -> i32 {
    let is_forked = |answer: Option<Result<(), Error>>| {
        answer.is_some_and(|it| it.is_err_and(|error| error.kind() == ErrorKind::Forked))
    };
    let lock = client.lock("a");
    let mut checks = vec![
        is_forked(lock.try_acquire().now_or_never().map(|it| it.map(drop))),
        is_forked(client.holders("a").now_or_never().map(|it| it.map(drop))),
    ];
    for (_, guard) in guards {
        checks.extend([
            !guard.is_valid(),
            guard.remaining() == Duration::ZERO,
            guard.lost().now_or_never() == Some(LostReason::Forked),
            is_forked(guard.renew().now_or_never().map(|it| it.map(drop))),
            is_forked(guard.release().now_or_never().map(|it| it.map(drop))),
        ]);
    }
    drop(lock);
    drop(client);
    let wrong = checks.iter().position(|is_right| !is_right);
    wrong.map_or(0, |number| number as i32 + 1)
}
