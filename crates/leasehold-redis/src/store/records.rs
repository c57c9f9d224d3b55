use leasehold::look::Pattern;
use leasehold::store::{BoxFuture, Opened, Reading, RecordKey, RecordWrite, Records, WriteOutcome};
use leasehold::{Error, Fence, Key};
use leasehold_quorum::views;
use leasehold_quorum::{Operation, Outcome, RecordAction, RecordAnswer};

use super::errors::unexpected;
use super::session::RedisSession;

impl Records for RedisSession {
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

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        let asked = self.ask_each(move |server| server.list_records(pattern, limit));
        Box::pin(async move { views::record_keys(asked.await, limit) })
    }
}

impl RedisSession {
    async fn record(
        &self,
        record: &RecordKey,
        action: RecordAction,
    ) -> Result<RecordAnswer, Error> {
        let operation = Operation::Record(record.clone(), action);
        match self.driver()?.start(operation).await {
            Outcome::Record(answer) => Ok(answer),
            Outcome::Failed(error) => Err(self.store.in_order(error)),
            _ => Err(unexpected()),
        }
    }
}
