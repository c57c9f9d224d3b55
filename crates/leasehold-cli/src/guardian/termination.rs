use std::time::Duration;

use leasehold::clock::BootInstant;

/// When the guarded processes must be asked to end, and when they must be gone.
///
/// Pure: maps events and the time to the next step. Once the ending has begun it is final, even if a
/// late renewal arrives.
#[derive(Debug)]
pub(crate) struct Termination {
    /// The time between SIGTERM and SIGKILL.
    grace: Duration,
    /// The time from SIGKILL to the deadline, so that the processes are gone by then.
    margin: Duration,
    deadline: Option<BootInstant>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Terminating { kill_at: BootInstant },
    Killing,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing before this instant; `None` if nothing until the next event.
    Wait(Option<BootInstant>),
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL, repeatedly until no process is left.
    Kill,
}

impl Termination {
    pub(crate) fn new(grace: Duration, margin: Duration, deadline: Option<BootInstant>) -> Self {
        Self {
            grace,
            margin,
            deadline,
            phase: Phase::Running,
        }
    }

    /// The lease was renewed, or has no end.
    pub(crate) fn deadline_moved(&mut self, deadline: Option<BootInstant>) {
        self.deadline = deadline;
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.phase != Phase::Running
    }

    /// What to do at `now`, given whether the lock is known to be `lost`. Returns [`Action::Terminate`]
    /// and [`Action::Kill`] once each.
    pub(crate) fn step(&mut self, now: BootInstant, lost: bool) -> Action {
        match self.phase {
            Phase::Running => {
                let begin = self.deadline.map(|d| d - self.grace.max(self.margin));
                if lost || begin.is_some_and(|begin| now >= begin) {
                    let latest = now + self.grace;
                    let kill_at = self
                        .deadline
                        .map_or(latest, |d| latest.min(d - self.margin));
                    self.phase = Phase::Terminating { kill_at };
                    Action::Terminate
                } else {
                    Action::Wait(begin)
                }
            }
            Phase::Terminating { kill_at } if now >= kill_at => {
                self.phase = Phase::Killing;
                Action::Kill
            }
            Phase::Terminating { kill_at } => Action::Wait(Some(kill_at)),
            Phase::Killing => Action::Wait(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_millis(500);
    const MARGIN: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_nanos(millis * 1_000_000)
    }

    fn termination(deadline: Option<u64>) -> Termination {
        Termination::new(GRACE, MARGIN, deadline.map(at))
    }

    #[test]
    fn without_renewal_everything_is_over_before_the_deadline() {
        let mut ending = termination(Some(3_000));
        assert_eq!(ending.step(at(0), false), Action::Wait(Some(at(2_500))));
        assert_eq!(ending.step(at(2_499), false), Action::Wait(Some(at(2_500))));
        assert!(!ending.has_begun());
        assert_eq!(ending.step(at(2_500), false), Action::Terminate);
        assert!(ending.has_begun());
        assert_eq!(ending.step(at(2_501), false), Action::Wait(Some(at(2_900))));
        assert_eq!(ending.step(at(2_900), false), Action::Kill);
        assert_eq!(ending.step(at(2_901), false), Action::Wait(None));
    }

    #[test]
    fn renewal_delays_termination_but_never_reverts_it() {
        let mut ending = termination(Some(3_000));
        ending.deadline_moved(Some(at(4_000)));
        assert_eq!(ending.step(at(2_900), false), Action::Wait(Some(at(3_500))));
        assert_eq!(ending.step(at(3_500), false), Action::Terminate);
        ending.deadline_moved(Some(at(9_000)));
        assert_eq!(ending.step(at(3_900), false), Action::Kill);
    }

    #[test]
    fn loss_terminates_at_once_with_grace_before_deadline() {
        let mut early = termination(Some(10_000));
        assert_eq!(early.step(at(1_000), true), Action::Terminate);
        assert_eq!(early.step(at(1_000), true), Action::Wait(Some(at(1_500))));
        let mut late = termination(Some(2_200));
        assert_eq!(late.step(at(1_650), true), Action::Terminate);
        assert_eq!(late.step(at(1_650), true), Action::Wait(Some(at(2_100))));
        let mut after = termination(Some(1_000));
        assert_eq!(after.step(at(5_000), false), Action::Terminate);
        assert_eq!(after.step(at(5_000), false), Action::Kill);
    }

    #[test]
    fn without_a_deadline_only_a_loss_begins_it() {
        let mut ending = termination(None);
        assert_eq!(ending.step(at(1 << 30), false), Action::Wait(None));
        assert_eq!(ending.step(at(1_000), true), Action::Terminate);
        assert_eq!(ending.step(at(1_400), true), Action::Wait(Some(at(1_500))));
        assert_eq!(ending.step(at(1_500), true), Action::Kill);
    }

    #[test]
    fn no_grace_still_leaves_the_margin() {
        let mut ending = Termination::new(Duration::ZERO, MARGIN, Some(at(1_000)));
        assert_eq!(ending.step(at(0), false), Action::Wait(Some(at(900))));
        assert_eq!(ending.step(at(900), false), Action::Terminate);
        assert_eq!(ending.step(at(900), false), Action::Kill);
    }
}
