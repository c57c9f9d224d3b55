use super::MemoryStore;
use crate::BoxFuture;
use crate::clock::BootInstant;
use crate::error::Error;
use crate::fence::Fence;
use crate::record_slot::RecordSlot;
use crate::records::{Opened, Reading, RecordKey, RecordWrite, Recorded, Records, Wrote};

impl Records for MemoryStore {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Recorded<Opened>, Error>> {
        Box::pin(async move { Ok(self.with_record(record, |slot, now| slot.open(fence, now))) })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<Recorded<Wrote>, Error>> {
        Box::pin(async move { Ok(self.with_record(record, |slot, now| slot.write(write, now))) })
    }

    fn read_record<'a>(
        &'a self,
        record: &'a RecordKey,
    ) -> BoxFuture<'a, Result<Recorded<Reading>, Error>> {
        Box::pin(async move { Ok(self.with_record(record, |slot, now| slot.read(now))) })
    }
}

impl MemoryStore {
    /// Runs `change` on the record's slot; with the answer, the data that gave it.
    fn with_record<T>(
        &self,
        record: &RecordKey,
        change: impl FnOnce(&mut RecordSlot<BootInstant>, BootInstant) -> T,
    ) -> Recorded<T> {
        let (now, wall) = (self.ambient.clock.now(), self.wall());
        let mut data = self.data();
        let answer = data
            .records
            .with(&record.key, now, |slot| change(slot, now));
        let sample = Some(data.sample(wall));
        Recorded { answer, sample }
    }
}
