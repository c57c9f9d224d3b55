//! Which permit is asked for. All members are asked for the same one: each permit is a lock of its
//! own, and holders that were only counted could each be counted on another majority.

use std::collections::VecDeque;

use crate::owner::Owner;
use crate::permits::{Permits, Slot, Slots};
use crate::quorum::ballot::majority;

/// What members said of a lock's permits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sayings {
    /// The one that a member told the waiter to take, by each that did.
    pub(crate) named: Vec<Slot>,
    /// Those that a member would have granted instead, by each that refused.
    pub(crate) free: Vec<Slots>,
}

impl Sayings {
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.free.iter().all(|free| free.is_empty())
    }

    /// The permit that a majority of `members` named, or else any of those that the most members
    /// would grant.
    pub(crate) fn choose(&self, permits: Permits, members: usize, random: u64) -> Slot {
        let named = |slot: Slot| self.named.iter().filter(|it| **it == slot).count();
        let grant = |slot| named(slot) + self.free.iter().filter(|it| it.contains(slot)).count();
        let agreed = permits.slots().find(|it| named(*it) >= majority(members));
        let most = permits.slots().map(grant).max();
        let best = || permits.slots().filter(|it| Some(grant(*it)) == most);
        let count = best().count().max(1);
        let any = best().nth(usize::try_from(random).unwrap_or_default() % count);
        // There is at least one permit.
        agreed.or(any).unwrap_or(Slot::FIRST)
    }

    /// The permits that more than half of the members that refused would have granted instead.
    pub(crate) fn agreed(&self) -> Slots {
        let all: Slots = self.free.iter().flat_map(|free| free.iter()).collect();
        let by = |slot: &Slot| self.free.iter().filter(|free| free.contains(*slot)).count();
        all.iter()
            .filter(|slot| by(slot) >= majority(self.free.len()))
            .collect()
    }
}

/// The permits that the latest attempts were for: an attempt that is made again is for the same one,
/// lest its owner have one at some members and another one at others.
#[derive(Debug, Default)]
pub(crate) struct Picks(VecDeque<(Owner, Slot)>);

impl Picks {
    pub(crate) fn of(&self, owner: Owner) -> Option<Slot> {
        let mut latest = self.0.iter().rev();
        latest.find(|(it, _)| *it == owner).map(|(_, slot)| *slot)
    }

    pub(crate) fn note(&mut self, owner: Owner, slot: Slot) {
        if self.0.len() == PICKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((owner, slot));
    }
}

const PICKS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemEntropy;
    use crate::owner::ClientId;

    fn permits() -> Permits {
        Permits::new(4).unwrap()
    }

    fn slot(number: u32) -> Slot {
        Slot::new(number, permits()).unwrap()
    }

    fn set(numbers: &[u32]) -> Slots {
        numbers.iter().map(|number| slot(*number)).collect()
    }

    fn choose(named: &[u32], free: &[&[u32]], random: u64) -> u32 {
        let said = Sayings {
            named: named.iter().map(|number| slot(*number)).collect(),
            free: free.iter().map(|numbers| set(numbers)).collect(),
        };
        said.choose(permits(), 3, random).get()
    }

    #[test]
    fn what_a_majority_names_is_chosen_whatever_else_is_free() {
        for random in 0..9 {
            assert_eq!(choose(&[2, 2], &[&[0, 1], &[0, 1], &[0]], random), 2);
        }
    }

    #[test]
    fn without_it_any_that_the_most_members_would_grant() {
        for random in 0..9 {
            assert_eq!(choose(&[3], &[&[0, 1, 3], &[1]], 2 * random), 1);
            assert_eq!(choose(&[3], &[&[0, 1, 3], &[1]], 2 * random + 1), 3);
        }
        let spread: Vec<u32> = (0..5).map(|random| choose(&[], &[], random)).collect();
        assert_eq!(spread, [0, 1, 2, 3, 0], "nobody has said anything");
    }

    #[test]
    fn others_are_to_be_had_where_most_of_those_that_refused_say_so() {
        let agreed = |free: &[&[u32]]| {
            let free = free.iter().map(|numbers| set(numbers)).collect();
            let named = Vec::new();
            Sayings { named, free }.agreed()
        };
        assert_eq!(agreed(&[&[0, 1], &[1, 2], &[1]]), set(&[1]));
        assert_eq!(agreed(&[&[0, 1], &[]]), set(&[]));
        assert_eq!(agreed(&[]), set(&[]));
    }

    #[test]
    fn an_attempt_that_is_made_again_is_for_the_same_permit() {
        let client = ClientId::random(&SystemEntropy);
        let owners: Vec<Owner> = (0..300)
            .map(|_| Owner::random(client, &SystemEntropy))
            .collect();
        let mut picks = Picks::default();
        for (number, owner) in (0..).zip(&owners) {
            assert_eq!(picks.of(*owner), None);
            picks.note(*owner, slot(number % 4));
        }
        assert_eq!(picks.of(owners[299]), Some(slot(299 % 4)));
        assert_eq!(picks.0.len(), PICKS_MAX, "bounded");
    }
}
