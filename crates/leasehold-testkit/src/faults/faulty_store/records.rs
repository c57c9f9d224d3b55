use leasehold::look::Pattern;
use leasehold::store::{BoxFuture, Opened, Reading, RecordKey, RecordWrite, Records, WriteOutcome};
use leasehold::{Error, Fence, Key};

use super::FaultySession;
use super::optional::of;

impl Records for FaultySession {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        let record = record.clone();
        self.ask(move |inner| {
            Box::pin(async move { of(inner.records())?.open_record(&record, fence).await })
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        let (record, write) = (record.clone(), write.clone());
        self.ask(move |inner| {
            Box::pin(async move { of(inner.records())?.write_record(&record, &write).await })
        })
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        let record = record.clone();
        self.ask(move |inner| {
            Box::pin(async move { of(inner.records())?.read_record(&record).await })
        })
    }

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        let pattern = pattern.clone();
        self.ask(move |inner| {
            Box::pin(async move { of(inner.records())?.list_records(&pattern, limit).await })
        })
    }
}
