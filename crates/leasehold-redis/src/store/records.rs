use std::sync::Arc;

use leasehold::store::{
    BoxFuture, ClientInfo, Opened, Reading, RecordKey, RecordWrite, Records, WriteOutcome,
};
use leasehold::{Error, Fence};
use leasehold_quorum::{Outcome, RecordAction, RecordAnswer};

use super::errors::unexpected;
use super::{RedisStore, Session};

impl Records for RedisStore {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            match self.record(record, RecordAction::Open(fence)).await? {
                RecordAnswer::Opened(opened) => Ok(opened),
                _ => Err(unexpected()),
            }
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        Box::pin(async move {
            let write = RecordAction::Write(write.clone());
            match self.record(record, write).await? {
                RecordAnswer::Written(wrote) => Ok(wrote),
                _ => Err(unexpected()),
            }
        })
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        Box::pin(async move {
            match self.record(record, RecordAction::Read).await? {
                RecordAnswer::Read(reading) => Ok(reading),
                _ => Err(unexpected()),
            }
        })
    }
}

impl RedisStore {
    async fn record(
        &self,
        record: &RecordKey,
        action: RecordAction,
    ) -> Result<RecordAnswer, Error> {
        let session = self.any_session()?;
        match session.driver.record(record.clone(), action).await {
            Outcome::Record(answer) => Ok(answer),
            Outcome::Failed(error) => Err(self.in_order(error)),
            _ => Err(unexpected()),
        }
    }

    /// Returns a session of any client, for operations that name none. If there is no session, one begins.
    pub(super) fn any_session(&self) -> Result<Arc<Session>, Error> {
        if let Some(session) = self.sessions().into_iter().next() {
            return Ok(session);
        }
        let client = || Arc::new(ClientInfo::of_this_process(&self.env, None));
        self.session(self.own.get_or_init(client))
    }
}
