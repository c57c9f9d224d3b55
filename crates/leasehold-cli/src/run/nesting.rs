use std::env;

use leasehold::{Guard, Holder, Mode};
use nix::unistd::{Pid, getpgrp};
use serde::{Deserialize, Serialize};

use crate::run::descendants::Process;

/// The runs around this one, as the environment tells: private, for the program itself.
///
/// `LEASEHOLD_RUN` holds `<guardian>:<locks>`: the guardian of the process group, and the locks that
/// are held around, the outermost first, as a JSON array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    guardian: Option<Pid>,
    locks: Vec<LockAround>,
}

/// A lock that a run around this one took, and by which attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LockAround {
    /// Where the store's locks are.
    store: String,
    name: String,
    owner: String,
    fence: u64,
}

pub(super) const VARIABLE: &str = "LEASEHOLD_RUN";

impl Nesting {
    /// What the environment says; nothing, if it makes no sense.
    pub(crate) fn of_this_process() -> Self {
        let text = env::var(VARIABLE).ok();
        text.and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// The variable's value for a command guarded by `guardian`, with `locks` held around it.
    pub(super) fn variable(guardian: Pid, locks: &str) -> String {
        format!("{guardian}:{locks}")
    }

    /// The guardian of the group that this process is in, if it is a guarded one: then this run is
    /// nested and stays in the group. A shell with job control inside a run puts its jobs into
    /// groups of their own, which are theirs again.
    pub(super) fn guardian_of_this_group(&self) -> Option<Pid> {
        let leader = Process::find(getpgrp())?;
        self.guardian.filter(|guardian| leader.parent == *guardian)
    }

    /// The locks around, and these as the innermost ones, as the guardian is told them.
    pub(super) fn with(&self, locks: impl IntoIterator<Item = LockAround>) -> String {
        let all: Vec<LockAround> = self.locks.iter().cloned().chain(locks).collect();
        // Texts and numbers can be written down.
        serde_json::to_string(&all).unwrap_or_default()
    }

    /// Whether any run is around this one.
    pub(super) fn is_nested(&self) -> bool {
        !self.locks.is_empty()
    }

    /// The innermost lock called `name` of this store that was taken around this run.
    pub(super) fn innermost(&self, store: &str, name: &str) -> Option<&LockAround> {
        let mut locks = self.locks.iter().rev();
        locks.find(|lock| lock.store == store && lock.name == name)
    }

    /// The holder that could only free the lock after this run ended: one around it. Of permits one
    /// more might come free; but runs that each hold one and want another would all wait for ever.
    pub(super) fn deadlock<'a>(&self, holders: &'a [Holder], wanted: Mode) -> Option<&'a Holder> {
        holders.iter().find(|holder| {
            let together = holder.mode == Mode::Shared && wanted == Mode::Shared;
            !together && self.is_around(holder)
        })
    }

    /// Whether a run around this one is among those who share the lock.
    pub(super) fn shares(&self, holders: &[Holder]) -> bool {
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

impl LockAround {
    /// The lock of `guard` in the store with its locks there.
    pub(super) fn of(guard: &Guard, store: &str) -> Self {
        Self {
            store: store.to_owned(),
            name: guard.key().to_string(),
            owner: guard.owner().to_string(),
            fence: guard.fence().get(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn fence(&self) -> u64 {
        self.fence
    }

    /// Whether `holder` is the very attempt that took the lock, and nobody broke it.
    pub(super) fn is_held_by(&self, holder: &Holder) -> bool {
        let owner = holder.owner.filter(|_| !holder.broken);
        owner.is_some_and(|owner| owner.to_string() == self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::ambient::SystemEntropy;
    use leasehold::{ClientId, Owner, Permits};

    fn owner() -> Owner {
        Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy)
    }

    fn lock(store: &str, name: &str, owner: Owner) -> LockAround {
        LockAround {
            store: store.into(),
            name: name.into(),
            owner: owner.to_string(),
            fence: 7,
        }
    }

    /// A run in a command that is guarded by process 7 and has these locks around it.
    fn inside(locks: &[LockAround]) -> Nesting {
        let around = Nesting::default().with(locks.to_vec());
        Nesting::parse(&Nesting::variable(Pid::from_raw(7), &around)).unwrap()
    }

    fn holder(owner: Owner, mode: Mode) -> [Holder; 1] {
        let mut holder = Holder::unknown(mode);
        holder.owner = Some(owner);
        [holder]
    }

    #[test]
    fn the_variable_survives_its_text_form() {
        let (outer, inner) = (lock("a,b", "x \"'{:", owner()), lock("a,b", "y", owner()));
        let around = inside(std::slice::from_ref(&outer));
        assert_eq!(around.locks, std::slice::from_ref(&outer));
        assert!(around.is_nested());
        let within = format!("9:{}", around.with([inner.clone()]));
        assert_eq!(Nesting::parse(&within).unwrap().locks, [outer, inner]);
    }

    #[test]
    fn nonsense_is_no_nesting() {
        for text in ["", "7", "7:", "x:[]", "7:abc", "7:[{}]"] {
            assert_eq!(Nesting::parse(text), None, "{text:?}");
        }
        assert!(!Nesting::default().is_nested());
    }

    #[test]
    fn the_innermost_lock_of_the_name_and_the_store_counts() {
        let (outer, inner) = (lock("a", "x", owner()), lock("a", "x", owner()));
        let around = inside(&[outer, inner.clone(), lock("b", "x", owner())]);
        assert_eq!(around.innermost("a", "x"), Some(&inner));
        assert_eq!(around.innermost("a", "y"), None);
        assert_eq!(around.innermost("c", "x"), None);
    }

    #[test]
    fn only_holders_around_this_run_that_would_keep_it_out_are_a_deadlock() {
        let (outer, stranger) = (owner(), owner());
        let nesting = inside(&[lock("a", "x", outer)]);
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        let permit = Mode::Permit(Permits::new(2).unwrap());
        let deadlock =
            |owner, mode, wanted| nesting.deadlock(&holder(owner, mode), wanted).is_some();
        assert!(deadlock(outer, alone, shared) && deadlock(outer, shared, alone));
        assert!(deadlock(outer, permit, permit) && deadlock(outer, permit, shared));
        assert!(!deadlock(outer, shared, shared) && !deadlock(stranger, alone, alone));
        assert!(nesting.shares(&holder(outer, shared)));
        assert!(!nesting.shares(&holder(outer, alone)));
        assert!(!nesting.shares(&holder(stranger, shared)));
        assert!(nesting.deadlock(&[Holder::unknown(alone)], alone).is_none());
    }
}
