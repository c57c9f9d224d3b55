use leasehold::{Admin, BoxFuture, BreakRecord, Broken, Error, Key};

use super::RedisMember;
use crate::breaking;

impl Admin for RedisMember {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<Broken, Error>> {
        Box::pin(async move {
            let broken = self.try_break(key, record).await;
            broken.map_err(|error| self.named(error))
        })
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        Box::pin(async move {
            let found = self.try_last_break(key).await;
            found.map_err(|error| self.named(error))
        })
    }
}

impl RedisMember {
    async fn try_break(&self, key: &Key, record: &BreakRecord) -> Result<Broken, Error> {
        let link = self.link().await?;
        breaking::break_lease(&link, &self.records_of(key), record).await
    }

    async fn try_last_break(&self, key: &Key) -> Result<Option<BreakRecord>, Error> {
        let link = self.link().await?;
        breaking::last_break(&link, &self.records_of(key), key).await
    }
}
