//! What may happen, and its words in a history that a person reads.

use crate::state::{Acquire, Phase, Renewal, State};

/// A step of an attempt, of its request at a member, or of a member. Both are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A client sends an attempt to its members, proposing its wall clock.
    Start(usize, u8),
    /// A majority granted, and its greatest answer is the fence.
    Choose(usize, u8),
    /// A majority confirmed the fence.
    Win(usize),
    /// The guard sends a round of renewal.
    Renew(usize),
    /// A majority extended the lease.
    StayValid(usize),
    /// The attempt is given up or the guard released.
    End(usize),
    /// A member takes the request for a lease, a fence, or a confirmation.
    Acquire(usize, usize),
    /// A member takes the request to renew.
    Extend(usize, usize),
    /// A member takes the request to put the lease back.
    Repair(usize, usize),
    /// A lease ends at a member: it expired, or a release arrived.
    Free(usize),
    /// A member restarts with nothing.
    Restart(usize),
    /// A member's clock jumps so far forward that the lease there ends.
    Jump(usize),
    /// Time goes on, for all clients and members, and waits for none.
    Tick,
}

/// Says what the step does.
pub(crate) fn line(before: &State, step: Step, after: &State) -> String {
    // The first attempt is A, and the first member is m1.
    let name = |a: usize| char::from(b'A' + a as u8);
    let at = |a: usize, m: usize| format!("m{}, for {}:", m + 1, name(a));
    match step {
        Step::Start(a, proposal) => format!("{} asks all members, proposing {proposal}", name(a)),
        Step::Choose(a, fence) if after.attempts[a].phase == Phase::Confirming => {
            format!("{} asks for a confirmation of fence {fence}", name(a))
        }
        Step::Choose(a, fence) => format!("{} HOLDS THE LOCK with fence {fence}", name(a)),
        Step::Win(a) => format!("{} HOLDS THE LOCK with the confirmed fence", name(a)),
        Step::Renew(a) => format!("{} asks all members to renew", name(a)),
        Step::StayValid(a) => format!("{} HOLDS THE LOCK for longer", name(a)),
        Step::End(a) => format!("{} gives up or releases", name(a)),
        Step::Acquire(a, m) => {
            let [was, now] = [before, after].map(|it| it.members[m].talks[a].acquire);
            let answer = match now {
                Acquire::Taken(_) => "takes the lease",
                Acquire::Gone | Acquire::Busy(_) => "no answer that counts",
                _ if matches!(was, Acquire::Confirming(_)) => "confirms",
                _ => "grants",
            };
            let counter = after.members[m].counter;
            format!("{} {answer}, with its counter at {counter}", at(a, m))
        }
        Step::Extend(a, m) => match after.members[m].talks[a].renewal {
            Renewal::Renewed => format!("{} renews", at(a, m)),
            Renewal::Free => format!("{} has no lease", at(a, m)),
            _ => format!("{} no renewal that counts", at(a, m)),
        },
        Step::Repair(a, m) => format!("{} puts the lease back if the lock is free", at(a, m)),
        Step::Free(m) => format!("m{}: the lease ends", m + 1),
        Step::Restart(m) => format!("m{}: restarts and forgets", m + 1),
        Step::Jump(m) => format!("m{}: the clock jumps, and the lease ends", m + 1),
        Step::Tick => "a tick passes".to_owned(),
    }
}
