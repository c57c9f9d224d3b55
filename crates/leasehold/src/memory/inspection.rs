use super::MemoryStore;
use super::slot::Slot;
use crate::BoxFuture;
use crate::error::Error;
use crate::holder::Holder;
use crate::inspection::Inspection;
use crate::key::Key;
use crate::pattern::Pattern;
use crate::queue::Waiter;
use crate::survey::{Survey, SurveyedLock};

impl Inspection for MemoryStore {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            Ok(self.with_slot(key, |slot, now| {
                slot.leases.iter().map(|lease| lease.holder(now)).collect()
            }))
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async move { Ok(self.with_slot(key, |slot, _| slot.queue.waiters())) })
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let now = self.ambient.clock.now();
            let held = |slot: &Slot| slot.leases.iter().any(|lease| now < lease.end);
            let data = self.data();
            let keys = data
                .slots
                .iter()
                .filter(|(key, slot)| key.as_str().starts_with(prefix) && held(slot));
            Ok(keys.map(|(key, _)| key.clone()).take(limit).collect())
        })
    }

    fn survey<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Survey, Error>> {
        Box::pin(async move {
            let (now, data) = (self.ambient.clock.now(), self.data());
            let held = data.slots.iter().filter_map(|(key, slot)| {
                let stands = slot.leases.iter().filter(|lease| now < lease.end);
                let holders: Vec<_> = stands.map(|lease| lease.holder(now)).collect();
                let is_meant = !holders.is_empty() && pattern.matches(key.as_str());
                is_meant.then(|| SurveyedLock::new(key.clone(), holders))
            });
            let mut locks: Vec<_> = held.take(limit.saturating_add(1)).collect();
            let more = locks.len() > limit;
            locks.truncate(limit);
            Ok(Survey::new(locks, more))
        })
    }
}
