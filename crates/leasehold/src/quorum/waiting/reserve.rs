use tokio::sync::watch;

use crate::clock::WallTime;
use crate::fence::Fence;

/// Fences that a lease has for its heirs: a majority of the members has counted beyond them, and grants
/// only greater ones after the lease.
#[derive(Debug)]
pub(crate) struct Reserve(watch::Sender<Progress>);

#[derive(Clone, Copy, Debug)]
enum Progress {
    /// The members are being asked.
    Asked,
    /// What was granted or left last, and the greatest that may be.
    Had {
        last: u64,
        greatest: u64,
    },
    Refused,
}

impl Default for Reserve {
    fn default() -> Self {
        Self(watch::Sender::new(Progress::Asked))
    }
}

impl Reserve {
    /// Up to which fence the heirs of a lease with `fence` are to have them: the numbers that time has
    /// passed by since. Fences must not run ahead of the clock, which alone keeps their order where all
    /// counters are lost; a few more than grants use up in the same time do no harm.
    pub(crate) fn greatest(fence: Fence, now: WallTime) -> Option<Fence> {
        let passed = now.as_micros().saturating_sub(fence.get());
        let count = passed.clamp(AT_LEAST, AT_MOST);
        Fence::new(fence.get() + count).filter(|greatest| *greatest <= Fence::MAX)
    }

    /// The members were asked to count to `greatest`, for a lease with `fence`.
    pub(crate) fn asked(&self, fence: Fence, greatest: Fence, is_had: bool) {
        self.0.send_replace(if is_had {
            let (last, greatest) = (fence.get(), greatest.get());
            Progress::Had { last, greatest }
        } else {
            Progress::Refused
        });
    }

    /// Resolves once the members were asked: whether they count.
    pub(crate) async fn is_had(&self) -> bool {
        let mut progress = self.0.subscribe();
        let known = |progress: &Progress| !matches!(progress, Progress::Asked);
        match progress.wait_for(known).await {
            Ok(progress) => matches!(*progress, Progress::Had { .. }),
            // The sender is ours: it lives as long as this.
            Err(_) => false,
        }
    }

    /// The next fence, greater than all before; `None` once all are used up.
    pub(super) fn draw(&self) -> Option<Fence> {
        let mut drawn = None;
        self.0.send_if_modified(|progress| {
            if let Progress::Had { last, greatest } = progress
                && *last < *greatest
            {
                *last += 1;
                drawn = Fence::new(*last);
            }
            false
        });
        drawn
    }
}

/// So many at once. When they are used up the lock is given back to the members, and whatever these know
/// better about its queue comes to bear.
const AT_LEAST: u64 = 16;
const AT_MOST: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_heir_has_a_fence_of_its_own_and_none_beyond_what_is_counted() {
        let fence = |number| Fence::new(number).unwrap();
        let reserve = Reserve::default();
        assert_eq!(reserve.draw(), None, "nobody has counted yet");
        reserve.asked(fence(7), fence(9), true);
        assert!(reserve.is_had().await);
        assert_eq!(reserve.draw(), Some(fence(8)));
        assert_eq!(reserve.draw(), Some(fence(9)));
        assert_eq!(reserve.draw(), None);

        let refused = Reserve::default();
        refused.asked(fence(7), fence(9), false);
        assert!(!refused.is_had().await);
        assert_eq!(refused.draw(), None);
    }

    #[test]
    fn fences_do_not_run_ahead_of_the_clock() {
        let greatest = |fence, now| {
            let fence = Fence::new(fence).unwrap();
            let greatest = Reserve::greatest(fence, WallTime::from_micros(now));
            greatest.map(Fence::get)
        };
        assert_eq!(greatest(5_000, 5_300), Some(5_300));
        assert_eq!(greatest(5_000, 9_000), Some(6_000));
        assert_eq!(greatest(5_000, 4_000), Some(5_016), "but a few");
        assert_eq!(greatest(Fence::MAX.get(), 0), None);
    }
}
