use leasehold::{
    BoxFuture, Error, Fence, Opened, Reading, RecordKey, RecordWrite, Recorded, Records, Wrote,
};

use super::RedisMember;
use crate::record;

impl Records for RedisMember {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Recorded<Opened>, Error>> {
        Box::pin(async move {
            let opened = self.try_open_record(record, fence).await;
            opened.map_err(|error| self.named(error))
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<Recorded<Wrote>, Error>> {
        Box::pin(async move {
            let wrote = self.try_write_record(record, write).await;
            wrote.map_err(|error| self.named(error))
        })
    }

    fn read_record<'a>(
        &'a self,
        record: &'a RecordKey,
    ) -> BoxFuture<'a, Result<Recorded<Reading>, Error>> {
        Box::pin(async move {
            let reading = self.try_read_record(record).await;
            reading.map_err(|error| self.named(error))
        })
    }
}

impl RedisMember {
    async fn try_open_record(
        &self,
        record: &RecordKey,
        fence: Fence,
    ) -> Result<Recorded<Opened>, Error> {
        let link = self.link().await?;
        record::open(&link, &self.records_of(&record.key), fence).await
    }

    async fn try_write_record(
        &self,
        record: &RecordKey,
        write: &RecordWrite,
    ) -> Result<Recorded<Wrote>, Error> {
        let link = self.link().await?;
        record::write(&link, &self.records_of(&record.key), write).await
    }

    async fn try_read_record(&self, record: &RecordKey) -> Result<Recorded<Reading>, Error> {
        let link = self.link().await?;
        record::read(&link, &self.records_of(&record.key)).await
    }
}
