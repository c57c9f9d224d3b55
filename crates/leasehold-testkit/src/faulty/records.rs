use leasehold::{
    BoxFuture, Error, ErrorKind, Fence, Member, Opened, Reading, RecordKey, RecordWrite, Recorded,
    Records, Wrote,
};

use super::FaultyMember;

impl Records for FaultyMember {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Recorded<Opened>, Error>> {
        let record = record.clone();
        self.ask(move |inner| {
            Box::pin(async move { kept(&*inner)?.open_record(&record, fence).await })
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<Recorded<Wrote>, Error>> {
        let (record, write) = (record.clone(), write.clone());
        self.ask(move |inner| {
            Box::pin(async move { kept(&*inner)?.write_record(&record, &write).await })
        })
    }

    fn read_record<'a>(
        &'a self,
        record: &'a RecordKey,
    ) -> BoxFuture<'a, Result<Recorded<Reading>, Error>> {
        let record = record.clone();
        self.ask(move |inner| Box::pin(async move { kept(&*inner)?.read_record(&record).await }))
    }
}

fn kept(member: &dyn Member) -> Result<&dyn Records, Error> {
    let none = || Error::new(ErrorKind::Unsupported, "the member keeps no records");
    member.records().ok_or_else(none)
}
