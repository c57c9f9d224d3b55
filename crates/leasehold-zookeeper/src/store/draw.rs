//! Which fence a grant draws: pure.
#![deny(clippy::disallowed_types)]

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{Error, ErrorKind, Fence};

/// Returns the fence after `last`, the counter's value, that is also after the proposal; `None` if none follows.
pub(super) fn fence_after(last: u64, proposal: WallTime) -> Option<Fence> {
    let greatest = last.max(proposal.as_micros());
    greatest.checked_add(1).and_then(Fence::new)
}

/// Refuses a proposal that is far from the leader's clock. Many locks share a counter, and one client with a clock far
/// ahead would raise the fences of all of them for good.
pub(super) fn check_proposal(proposal: WallTime, leader: WallTime) -> Result<(), Error> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let apart = leader.distance(proposal);
    if apart <= DAY {
        return Ok(());
    }
    let days = apart.as_secs_f64() / DAY.as_secs_f64();
    let text = format!(
        "this machine's clock and the leader's are {days:.1} days apart: at most 1 is allowed, \
         since fences follow the clock"
    );
    Err(Error::new(ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000;

    fn at(micros: u64) -> WallTime {
        WallTime::from_micros(micros)
    }

    #[test]
    fn fence_exceeds_counter_and_proposal() {
        assert_eq!(fence_after(7, at(3)), Fence::new(8));
        assert_eq!(fence_after(3, at(7)), Fence::new(8));
        assert_eq!(fence_after(u64::MAX, at(3)), None);
    }

    #[test]
    fn proposal_may_differ_by_a_day() {
        let leader = at(1_795_000_000_000_000);
        let ahead = |micros: u64| at(leader.as_micros() + micros);
        let behind = |micros: u64| at(leader.as_micros() - micros);
        for fine in [leader, ahead(24 * HOUR), behind(24 * HOUR)] {
            assert!(check_proposal(fine, leader).is_ok(), "{fine:?}");
        }
        for far in [ahead(25 * HOUR), behind(25 * HOUR), at(0), at(u64::MAX)] {
            let error = check_proposal(far, leader).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        // Milliseconds that were taken for seconds.
        let error = check_proposal(at(leader.as_micros() * 1000), leader).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("20754687.5 days apart: at most 1"), "{text}");
    }
}
