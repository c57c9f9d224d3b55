use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;

use leasehold::Mode;

use super::history::{Event, Hold, What};

/// How many locks were granted, and how: what a run has tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grants {
    /// Of all kinds.
    pub all: u64,
    /// To readers.
    pub shared: u64,
    /// Permits.
    pub permits: u64,
    /// As one of a set.
    pub of_sets: u64,
    /// Left by another of the same client.
    pub inherited: u64,
    /// Then made shared.
    pub downgraded: u64,
}

impl Grants {
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut asked = BTreeMap::<Hold, (Mode, bool)>::new();
        let mut owners = BTreeSet::new();
        let mut grants = Self::default();
        for event in events {
            match &event.what {
                What::Asked {
                    hold, mode, set, ..
                } => {
                    asked.insert(*hold, (*mode, set.is_some()));
                }
                What::Granted { hold, owner, .. } => {
                    let (mode, of_set) = asked[hold];
                    grants.inherited += u64::from(!owners.insert(*owner));
                    grants.all += 1;
                    grants.shared += u64::from(mode == Mode::Shared);
                    grants.permits += u64::from(matches!(mode, Mode::Permit(_)));
                    grants.of_sets += u64::from(of_set);
                }
                What::Downgraded { .. } => grants.downgraded += 1,
                _ => {}
            }
        }
        grants
    }
}

impl AddAssign for Grants {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.shared += other.shared;
        self.permits += other.permits;
        self.of_sets += other.of_sets;
        self.inherited += other.inherited;
        self.downgraded += other.downgraded;
    }
}

impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            all,
            shared,
            permits,
            of_sets,
            inherited,
            downgraded,
        } = self;
        write!(
            f,
            "{all} locks granted ({shared} shared, {permits} permits, {of_sets} in sets, {inherited} left \
             by another of the client, {downgraded} made shared later)"
        )
    }
}
