//! What a client knows of the counters of fences without asking.

use std::collections::HashMap;
use std::sync::Mutex;

use leasehold::Fence;
use leasehold::clock::WallTime;
use leasehold::store::locked;

/// The counters from which this client has drawn in its session, by their paths.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<HashMap<String, Known>>);

/// What the last confirmed draw of this client left. A fence of another client may be greater than that of a draw without an
/// answer, although the version is the same.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Servers that lose their data also lose the session.
    session: i64,
    last: Fence,
    version: i32,
    /// Whether the draw before it was of this client, too. Otherwise other clients draw, and the counter has moved on.
    is_likely: bool,
    /// Whether a draw in advance is under way.
    is_taken: bool,
}

impl Counters {
    /// Returns the fence to draw in advance, and the version that the counter must have. `None` if the draw would probably fail.
    pub(super) fn take(
        &self,
        path: &str,
        session: i64,
        proposal: WallTime,
    ) -> Option<(Fence, i32)> {
        let mut counters = locked(&self.0);
        let known = counters.get_mut(path)?;
        if known.session != session || !known.is_likely || known.is_taken {
            return None;
        }
        let fence = Fence::after(Some(known.last), proposal).ok()?;
        known.is_taken = true;
        Some((fence, known.version))
    }

    /// Notes a draw that found the counter in this version, or created it.
    pub(super) fn drew(&self, path: &str, session: i64, fence: Fence, found: Option<i32>) {
        let mut counters = locked(&self.0);
        let is_own = |known: &Known| known.session == session && Some(known.version) == found;
        let known = Known {
            session,
            last: fence,
            version: found.map_or(0, |found| found.wrapping_add(1)),
            is_likely: counters.get(path).is_some_and(is_own),
            is_taken: false,
        };
        counters.insert(path.to_owned(), known);
    }

    /// Notes that a draw in advance failed.
    pub(super) fn forget(&self, path: &str) {
        locked(&self.0).remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_micros(1_700_000_000_000_000);

    fn fence(above: u64) -> Fence {
        Fence::new(NOW.as_micros() + above).unwrap()
    }

    #[test]
    fn two_own_draws_make_the_next_likely() {
        let counters = Counters::default();
        assert_eq!(counters.take("a", 1, NOW), None);
        counters.drew("a", 1, fence(10), None);
        assert_eq!(counters.take("a", 1, NOW), None, "one draw");
        counters.drew("a", 1, fence(20), Some(0));
        assert_eq!(counters.take("b", 1, NOW), None);
        assert_eq!(counters.take("a", 2, NOW), None, "another session");
        assert_eq!(counters.take("a", 1, NOW), Some((fence(21), 1)));
        counters.drew("a", 1, fence(21), Some(1));
        assert_eq!(counters.take("a", 1, NOW), Some((fence(22), 2)));
    }

    /// Another client may have made the draw that was expected, with a greater fence.
    #[test]
    fn no_draw_builds_on_one_without_an_answer() {
        let counters = Counters::default();
        for version in [4, 5] {
            counters.drew("a", 1, fence(20), Some(version));
        }
        assert!(counters.take("a", 1, NOW).is_some());
        assert_eq!(counters.take("a", 1, NOW), None);
        counters.drew("a", 1, fence(90), Some(7));
        assert_eq!(counters.take("a", 1, NOW), None, "version 6 is unknown");
        counters.drew("a", 1, fence(91), Some(8));
        assert_eq!(counters.take("a", 1, NOW), Some((fence(92), 9)));
    }

    #[test]
    fn draws_of_others_stop_the_guesses() {
        let counters = Counters::default();
        for version in [4, 5] {
            counters.drew("a", 1, fence(20), Some(version));
        }
        counters.drew("a", 1, fence(40), Some(7));
        assert_eq!(counters.take("a", 1, NOW), None, "version 6 was another's");
        counters.drew("a", 1, fence(50), Some(8));
        assert!(counters.take("a", 1, NOW).is_some());
        counters.forget("a");
        assert_eq!(counters.take("a", 1, NOW), None);
        counters.drew("a", 1, fence(60), Some(10));
        assert_eq!(counters.take("a", 1, NOW), None);
    }
}
