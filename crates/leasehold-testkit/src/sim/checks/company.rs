use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::{Mode, Owner};

use super::spans::Span;
use super::waits::Asking;
use crate::sim::execution::{Execution, Stand};
use crate::sim::history::{Event, Hold, What};

/// Whether leases, or guards, of these modes may stand together: any one alone, any number of shared
/// ones, and permits of one number, as many as that.
pub(super) fn may_stand_together(modes: &[Mode]) -> bool {
    let Some((first, others)) = modes.split_first().filter(|(_, others)| !others.is_empty()) else {
        return true;
    };
    let alike = others.iter().all(|other| other == first);
    match first {
        Mode::Exclusive => false,
        Mode::Shared => alike,
        Mode::Permit(permits) => alike && modes.len() <= permits.get() as usize,
    }
}

/// Whether permits of another number than `wanted` are held.
pub(super) fn permits_differ(wanted: Mode, stands: &[Stand]) -> bool {
    let held = stands.iter().filter_map(|stand| stand.mode.permits());
    wanted
        .permits()
        .is_some_and(|wanted| held.into_iter().any(|it| it != wanted))
}

/// The leases at each server beside which others may come to stand.
#[derive(Default)]
pub(super) struct Company {
    stands: BTreeMap<(usize, usize), Vec<Stand>>,
    /// They may still stand, but are as good as freed.
    given_back: BTreeSet<Owner>,
    /// They are shared, or about to be.
    downgraded: BTreeSet<Owner>,
}

impl Company {
    pub(super) fn see(&mut self, event: &Event, held: &BTreeMap<Hold, &Span>) {
        match &event.what {
            What::Executed(Execution {
                server,
                key,
                after: stands,
                ..
            })
            | What::Holds {
                server,
                key,
                stands,
            } => {
                self.stands.insert((*server, *key), stands.clone());
            }
            What::Downgraded { hold } => {
                self.downgraded
                    .extend(held.get(hold).map(|span| span.owner));
            }
            // By one to whom it went over.
            What::Granted { owner, .. } => {
                self.given_back.remove(owner);
            }
            What::Ended { hold, .. } => {
                self.given_back
                    .extend(held.get(hold).map(|span| span.owner));
            }
            _ => {}
        }
    }

    /// The modes in which a key is held at each server. What is held alone beside a lock that is given
    /// back or shared is left of a failed attempt, and keeps nobody out.
    fn modes(&self, key: usize, at: Duration) -> impl Iterator<Item = Vec<Mode>> {
        let of_key = self.stands.iter().filter(move |((_, it), _)| *it == key);
        of_key.map(move |(_, stands)| {
            let standing = stands
                .iter()
                .filter(|it| at < it.until && !self.given_back.contains(&it.owner));
            let modes = standing.map(|it| {
                let is_shared = self.downgraded.contains(&it.owner);
                if is_shared { Mode::Shared } else { it.mode }
            });
            modes.filter(|mode| *mode != Mode::Exclusive).collect()
        })
    }

    pub(super) fn stands(&self, key: usize, at: Duration) -> bool {
        self.modes(key, at).any(|modes| !modes.is_empty())
    }

    pub(super) fn lets_in(&self, asking: &Asking, at: Duration) -> bool {
        let together =
            |modes: Vec<Mode>| may_stand_together(&[&modes[..], &[asking.mode]].concat());
        self.modes(asking.key, at).all(together)
    }
}

#[cfg(test)]
mod tests {
    use leasehold::Permits;

    use super::*;

    #[test]
    fn only_readers_and_permits_of_one_number_stand_together() {
        let permit = |count| Mode::Permit(Permits::new(count).unwrap());
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        for modes in [
            &[][..],
            &[alone],
            &[shared; 5],
            &[permit(2); 2],
            &[permit(1)],
        ] {
            assert!(may_stand_together(modes), "{modes:?}");
        }
        for modes in [
            &[alone; 2][..],
            &[alone, shared],
            &[shared, shared, alone],
            &[permit(2); 3],
            &[permit(2), permit(3)],
            &[permit(2), shared],
            &[alone, permit(2)],
        ] {
            assert!(!may_stand_together(modes), "{modes:?}");
        }
    }
}
