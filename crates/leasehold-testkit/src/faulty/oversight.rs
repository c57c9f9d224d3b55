use leasehold::{BoxFuture, BreakRecord, Broken, Error, Key, Oversight, Pattern, Survey};

use super::FaultyMember;

impl Oversight for FaultyMember {
    fn survey<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Survey, Error>> {
        let pattern = pattern.clone();
        self.ask(move |inner| Box::pin(async move { inner.survey(&pattern, limit).await }))
    }

    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<Broken, Error>> {
        let (key, record) = (key.clone(), record.clone());
        self.ask(move |inner| Box::pin(async move { inner.break_lease(&key, &record).await }))
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        let key = key.clone();
        self.ask(move |inner| Box::pin(async move { inner.last_break(&key).await }))
    }
}
