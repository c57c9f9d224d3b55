use leasehold::{BoxFuture, Error, Holder, Inspection, Key, Pattern, Survey, Waiter};

use super::RedisMember;
use crate::{look, scan};

impl Inspection for RedisMember {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async {
            self.try_holders(key)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async {
            self.try_waiters(key)
                .await
                .map_err(|error| self.named(error))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let listed = self.try_list(prefix, limit).await;
            listed.map_err(|error| self.named(error))
        })
    }

    fn survey<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Survey, Error>> {
        Box::pin(async move {
            let surveyed = self.try_survey(pattern, limit).await;
            surveyed.map_err(|error| self.named(error))
        })
    }
}

impl RedisMember {
    async fn try_holders(&self, key: &Key) -> Result<Vec<Holder>, Error> {
        let link = self.link().await?;
        look::holders(&link, &self.records_of(key)).await
    }

    async fn try_waiters(&self, key: &Key) -> Result<Vec<Waiter>, Error> {
        let link = self.link().await?;
        look::waiters(&link, &self.records_of(key)).await
    }

    async fn try_list(&self, prefix: &str, limit: usize) -> Result<Vec<Key>, Error> {
        let link = self.link().await?;
        scan::list(&link, &self.connector.url().prefix, prefix, limit).await
    }

    async fn try_survey(&self, pattern: &Pattern, limit: usize) -> Result<Survey, Error> {
        let link = self.link().await?;
        scan::survey(&link, &self.connector.url().prefix, pattern, limit).await
    }
}
