use std::time::Duration;

use leasehold::clock::BootInstant;

/// When the guarded processes must be asked to end, and when they must be gone.
///
/// Pure: maps events and the time to the next step. Once the ending has begun it is final, even if a
/// late renewal arrives.
#[derive(Debug)]
pub(crate) struct Ending {
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
pub(crate) enum Step {
    /// Nothing before this instant; `None` if nothing until the next event.
    Wait(Option<BootInstant>),
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL, repeatedly until no process is left.
    Kill,
}

impl Ending {
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

    /// What to do at `now`, given whether the lock is known to be `lost`. Returns [`Step::Terminate`]
    /// and [`Step::Kill`] once each.
    pub(crate) fn step(&mut self, now: BootInstant, lost: bool) -> Step {
        match self.phase {
            Phase::Running => {
                let begin = self.deadline.map(|d| d - self.grace.max(self.margin));
                if lost || begin.is_some_and(|begin| now >= begin) {
                    let latest = now + self.grace;
                    let kill_at = self
                        .deadline
                        .map_or(latest, |d| latest.min(d - self.margin));
                    self.phase = Phase::Terminating { kill_at };
                    Step::Terminate
                } else {
                    Step::Wait(begin)
                }
            }
            Phase::Terminating { kill_at } if now >= kill_at => {
                self.phase = Phase::Killing;
                Step::Kill
            }
            Phase::Terminating { kill_at } => Step::Wait(Some(kill_at)),
            Phase::Killing => Step::Wait(None),
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

    fn ending(deadline: Option<u64>) -> Ending {
        Ending::new(GRACE, MARGIN, deadline.map(at))
    }

    #[test]
    fn without_renewal_everything_is_over_before_the_deadline() {
        let mut ending = ending(Some(3_000));
        assert_eq!(ending.step(at(0), false), Step::Wait(Some(at(2_500))));
        assert_eq!(ending.step(at(2_499), false), Step::Wait(Some(at(2_500))));
        assert!(!ending.has_begun());
        assert_eq!(ending.step(at(2_500), false), Step::Terminate);
        assert!(ending.has_begun());
        assert_eq!(ending.step(at(2_501), false), Step::Wait(Some(at(2_900))));
        assert_eq!(ending.step(at(2_900), false), Step::Kill);
        assert_eq!(ending.step(at(2_901), false), Step::Wait(None));
    }

    #[test]
    fn renewals_put_it_off_but_never_take_it_back() {
        let mut ending = ending(Some(3_000));
        ending.deadline_moved(Some(at(4_000)));
        assert_eq!(ending.step(at(2_900), false), Step::Wait(Some(at(3_500))));
        assert_eq!(ending.step(at(3_500), false), Step::Terminate);
        ending.deadline_moved(Some(at(9_000)));
        assert_eq!(ending.step(at(3_900), false), Step::Kill);
    }

    #[test]
    fn a_loss_begins_it_at_once_and_grants_the_grace_within_the_deadline() {
        let mut early = ending(Some(10_000));
        assert_eq!(early.step(at(1_000), true), Step::Terminate);
        assert_eq!(early.step(at(1_000), true), Step::Wait(Some(at(1_500))));
        let mut late = ending(Some(2_200));
        assert_eq!(late.step(at(1_650), true), Step::Terminate);
        assert_eq!(late.step(at(1_650), true), Step::Wait(Some(at(2_100))));
        let mut after = ending(Some(1_000));
        assert_eq!(after.step(at(5_000), false), Step::Terminate);
        assert_eq!(after.step(at(5_000), false), Step::Kill);
    }

    #[test]
    fn without_a_deadline_only_a_loss_begins_it() {
        let mut ending = ending(None);
        assert_eq!(ending.step(at(1 << 30), false), Step::Wait(None));
        assert_eq!(ending.step(at(1_000), true), Step::Terminate);
        assert_eq!(ending.step(at(1_400), true), Step::Wait(Some(at(1_500))));
        assert_eq!(ending.step(at(1_500), true), Step::Kill);
    }

    #[test]
    fn no_grace_still_leaves_the_margin() {
        let mut ending = Ending::new(Duration::ZERO, MARGIN, Some(at(1_000)));
        assert_eq!(ending.step(at(0), false), Step::Wait(Some(at(900))));
        assert_eq!(ending.step(at(900), false), Step::Terminate);
        assert_eq!(ending.step(at(900), false), Step::Kill);
    }
}
