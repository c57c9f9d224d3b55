//! Values that the unit tests share.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use leasehold_types::{
    ClientId, ClientInfo, DataGeneration, Entropy, Key, LockRequest, MemberId, MemberRecord,
    MemberRecordEdit, Observation, Owner, WallTime,
};

/// Random numbers, from the seeds of the standard library's hash maps.
#[derive(Debug)]
pub(crate) struct RandomEntropy;

impl Entropy for RandomEntropy {
    fn next_u64(&self) -> u64 {
        RandomState::new().hash_one(0)
    }
}

/// Returns a request of a new client on the lock `x`.
pub(crate) fn lock_request(ttl: Duration) -> LockRequest {
    let since = WallTime::from_micros(1);
    let id = ClientId::random(&RandomEntropy);
    let info = ClientInfo::new(id, "host".into(), 1, "test".into(), since);
    let owner = Owner::random(id, &RandomEntropy);
    LockRequest::new(Key::new("x").unwrap(), owner, ttl, since, Arc::new(info))
}

/// Returns the record that a member writes over `old` when its clock says `now`.
pub(crate) fn edited(
    old: Option<MemberRecord>,
    edit: MemberRecordEdit,
    now: WallTime,
) -> MemberRecord {
    assert_eq!(old.as_ref().map(MemberRecord::epoch), edit.expected);
    let same = old.as_ref().filter(|it| it.generation == edit.generation);
    let since = |age: Duration| {
        let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        WallTime::from_micros(now.as_micros().saturating_sub(age))
    };
    let mut record = MemberRecord {
        changed: same.map_or(now, |it| it.changed),
        since: match (edit.age, &old) {
            (None, Some(old)) => old.since,
            (age, _) => since(age.unwrap_or_default()),
        },
        set: edit.set,
        generation: edit.generation,
        data_generation: edit.data_generation,
        run: edit.run,
        durable: edit.durable,
        observations: old.map(|it| it.observations).unwrap_or_default(),
    };
    observe(&mut record, &edit.seen, now);
    record
}

/// Adds what a client saw of the other members to a record.
pub(crate) fn observe(
    record: &mut MemberRecord,
    seen: &[(MemberId, DataGeneration)],
    now: WallTime,
) {
    let is_admission = |(id, drawn): &(MemberId, DataGeneration)| {
        let known = record.seen(id);
        known.is_none_or(|known| drawn.was_admitted_after(known))
    };
    let changes = record.is_formed() && seen.iter().any(is_admission);
    record.generation += u64::from(changes) << 32;
    for (id, data_generation) in seen {
        let known = record.observations.get(id).copied();
        if let Some(observation) = Observation::noted(known, *data_generation, now) {
            record.observations.insert(id.clone(), observation);
        }
    }
}
