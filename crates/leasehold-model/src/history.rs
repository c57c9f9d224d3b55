//! A step in words, for a history that a person reads.

use crate::quorum::Step;
use crate::state::{Acquire, Phase, Renewal, State};

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
