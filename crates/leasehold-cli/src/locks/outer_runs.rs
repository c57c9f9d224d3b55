use std::env;

use leasehold::look::Holder;
use leasehold::{Guard, Mode};
use nix::unistd::{Pid, getpgrp};
use serde::{Deserialize, Serialize};

use crate::system;

/// The outer runs according to the environment. Private to this program.
///
/// `LEASEHOLD_RUN` contains `<guardian>:<locks>`: the guardian of the process group, and the locks of
/// the outer runs, the outermost first, as a JSON array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OuterRuns {
    guardian: Option<Pid>,
    locks: Vec<OuterLock>,
}

/// A lock of an outer run, and the attempt that acquired it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OuterLock {
    /// The location of the locks of the store.
    store: String,
    name: String,
    owner: String,
    fence: u64,
}

pub(crate) const VARIABLE: &str = "LEASEHOLD_RUN";

impl OuterRuns {
    /// Reads the environment. Without a valid value, there are no outer runs.
    pub(crate) fn of_this_process() -> Self {
        let text = env::var(VARIABLE).ok();
        text.and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// The value of the variable for the guardian, which does not know its own id yet. The locks are not
    /// among its arguments, which every user of the machine can read.
    pub(crate) fn variable_for_guardian(locks: &str) -> String {
        format!(":{locks}")
    }

    /// The value of the variable for a command of `guardian`, which is this process or that of an outer run.
    pub(crate) fn variable_below(guardian: Pid) -> String {
        let own = env::var(VARIABLE).unwrap_or_default();
        format!("{guardian}{own}")
    }

    /// The guardian of the process group of this process, if it has one. Then this run is nested and
    /// stays in the group. A shell with job control inside a run puts its jobs into their own groups,
    /// which are not nested.
    pub(crate) fn guardian_of_this_group(&self) -> Option<Pid> {
        let leader = system::process(getpgrp())?;
        self.guardian.filter(|guardian| leader.parent == *guardian)
    }

    /// The locks of the outer runs with these as the innermost ones, for the guardian.
    pub(crate) fn with(&self, locks: impl IntoIterator<Item = OuterLock>) -> String {
        let all: Vec<OuterLock> = self.locks.iter().cloned().chain(locks).collect();
        // Texts and numbers can always be serialized.
        serde_json::to_string(&all).unwrap_or_default()
    }

    /// Whether there is an outer run.
    pub(crate) fn is_nested(&self) -> bool {
        !self.locks.is_empty()
    }

    /// The innermost lock `name` of this store that an outer run acquired.
    pub(crate) fn innermost(&self, store: &str, name: &str) -> Option<&OuterLock> {
        let mut locks = self.locks.iter().rev();
        locks.find(|lock| lock.store == store && lock.name == name)
    }

    /// The holder that can release the lock only after this run ends: an outer run. Another permit
    /// might become free, but runs that each hold one and want another would deadlock.
    pub(crate) fn deadlock<'a>(&self, holders: &'a [Holder], wanted: Mode) -> Option<&'a Holder> {
        holders.iter().find(|holder| {
            let together = holder.mode == Mode::Shared && wanted == Mode::Shared;
            !together && self.is_around(holder)
        })
    }

    /// Whether an outer run is one of the shared holders.
    pub(crate) fn shares(&self, holders: &[Holder]) -> bool {
        let mut shared = holders.iter().filter(|holder| holder.mode == Mode::Shared);
        shared.any(|holder| self.is_around(holder))
    }

    fn is_around(&self, holder: &Holder) -> bool {
        self.locks.iter().any(|lock| lock.is_held_by(holder))
    }

    fn parse(text: &str) -> Option<Self> {
        let (guardian, locks) = text.split_once(':')?;
        Some(Self {
            guardian: Some(Pid::from_raw(guardian.parse().ok()?)),
            locks: serde_json::from_str(locks).ok()?,
        })
    }
}

impl OuterLock {
    /// The lock of `guard` in the store with its locks there.
    pub(crate) fn of(guard: &Guard, store: &str) -> Self {
        Self {
            store: store.to_owned(),
            name: guard.key().to_string(),
            owner: guard.owner().to_string(),
            fence: guard.fence().get(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether `holder` is the attempt that acquired the lock, and the lock was not broken.
    pub(crate) fn is_held_by(&self, holder: &Holder) -> bool {
        let owner = holder.owner.filter(|_| !holder.broken);
        owner.is_some_and(|owner| owner.to_string() == self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::env::SystemEntropy;
    use leasehold::look::{ClientId, Owner};
    use leasehold::store::Permits;

    fn owner() -> Owner {
        Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy)
    }

    fn lock(store: &str, name: &str, owner: Owner) -> OuterLock {
        OuterLock {
            store: store.into(),
            name: name.into(),
            owner: owner.to_string(),
            fence: 7,
        }
    }

    /// A run inside a command of guardian 7 under these locks.
    fn inside(locks: &[OuterLock]) -> OuterRuns {
        let outer_lock = OuterRuns::default().with(locks.to_vec());
        let variable = OuterRuns::variable_for_guardian(&outer_lock);
        OuterRuns::parse(&format!("7{variable}")).unwrap()
    }

    fn holder(owner: Owner, mode: Mode) -> [Holder; 1] {
        let mut holder = Holder::unknown(mode);
        holder.owner = Some(owner);
        [holder]
    }

    #[test]
    fn the_variable_survives_its_text_form() {
        let (outer, inner) = (lock("a,b", "x \"'{:", owner()), lock("a,b", "y", owner()));
        let outer_lock = inside(std::slice::from_ref(&outer));
        assert_eq!(outer_lock.locks, std::slice::from_ref(&outer));
        assert!(outer_lock.is_nested());
        let within = format!("9:{}", outer_lock.with([inner.clone()]));
        assert_eq!(OuterRuns::parse(&within).unwrap().locks, [outer, inner]);
    }

    #[test]
    fn nonsense_is_no_nesting() {
        for text in ["", "7", "7:", "x:[]", "7:abc", "7:[{}]"] {
            assert_eq!(OuterRuns::parse(text), None, "{text:?}");
        }
        assert!(!OuterRuns::default().is_nested());
    }

    #[test]
    fn innermost_lock_of_name_and_store_is_found() {
        let (outer, inner) = (lock("a", "x", owner()), lock("a", "x", owner()));
        let outer_lock = inside(&[outer, inner.clone(), lock("b", "x", owner())]);
        assert_eq!(outer_lock.innermost("a", "x"), Some(&inner));
        assert_eq!(outer_lock.innermost("a", "y"), None);
        assert_eq!(outer_lock.innermost("c", "x"), None);
    }

    #[test]
    fn only_conflicting_outer_locks_are_a_deadlock() {
        let (outer, stranger) = (owner(), owner());
        let outer_runs = inside(&[lock("a", "x", outer)]);
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        let permit = Mode::Permit(Permits::new(2).unwrap());
        let deadlock =
            |owner, mode, wanted| outer_runs.deadlock(&holder(owner, mode), wanted).is_some();
        assert!(deadlock(outer, alone, shared) && deadlock(outer, shared, alone));
        assert!(deadlock(outer, permit, permit) && deadlock(outer, permit, shared));
        assert!(!deadlock(outer, shared, shared) && !deadlock(stranger, alone, alone));
        assert!(outer_runs.shares(&holder(outer, shared)));
        assert!(!outer_runs.shares(&holder(outer, alone)));
        assert!(!outer_runs.shares(&holder(stranger, shared)));
        assert!(
            outer_runs
                .deadlock(&[Holder::unknown(alone)], alone)
                .is_none()
        );
    }
}
