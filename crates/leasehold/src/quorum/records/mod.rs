//! Records over a quorum: fences are ballots. Opening asks a majority, and finds what a majority may
//! have; writing needs a majority that no greater fence has opened.

mod round;

use std::sync::Arc;

use super::Quorum;
use super::link::Link;
use super::under_way::UnderWay;
use crate::BoxFuture;
use crate::error::Error;
use crate::fence::Fence;
use crate::member::MemberFailure;
use crate::records::{Opened, Reading, RecordKey, RecordWrite, Recorded, Records, Wrote};
use round::{OpenRound, ReadRound, WriteRound};

impl Records for Quorum {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Recorded<Opened>, Error>> {
        Box::pin(async move {
            let mut answers = ask(&self.links, record, move |records, record| {
                Box::pin(async move { records.open_record(record, fence).await })
            });
            let mut round = OpenRound::new(self.links.len());
            while !round.is_decided()
                && let Some((place, answer)) = answers.next().await
            {
                round.count(answer.map_err(|error| self.failure(place, error)));
            }
            round.outcome().map(Recorded::plain)
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<Recorded<Wrote>, Error>> {
        Box::pin(async move {
            let write = write.clone();
            let mut answers = ask(&self.links, record, move |records, record| {
                let write = write.clone();
                Box::pin(async move { records.write_record(record, &write).await })
            });
            let mut round = WriteRound::new(self.links.len());
            while !round.is_decided()
                && let Some((place, answer)) = answers.next().await
            {
                round.count(answer.map_err(|error| self.failure(place, error)));
            }
            round.outcome().map(Recorded::plain)
        })
    }

    fn read_record<'a>(
        &'a self,
        record: &'a RecordKey,
    ) -> BoxFuture<'a, Result<Recorded<Reading>, Error>> {
        Box::pin(async move {
            let mut answers = ask(&self.links, record, |records, record| {
                Box::pin(async move { records.read_record(record).await })
            });
            let mut round = ReadRound::new(self.links.len());
            while !round.is_decided()
                && let Some((place, answer)) = answers.next().await
            {
                round.count(answer.map_err(|error| self.failure(place, error)));
            }
            round.outcome().map(Recorded::plain)
        })
    }
}

impl Quorum {
    fn failure(&self, place: usize, error: Error) -> MemberFailure {
        MemberFailure::new(self.links[place].member().id().clone(), error)
    }
}

type Answers<T> = UnderWay<(usize, Result<T, Error>)>;

/// Asks all members at once. Those that nobody waits for any more finish in the background.
fn ask<T: Send + 'static>(
    links: &[Arc<Link>],
    record: &RecordKey,
    question: impl for<'r> Fn(
        &'r dyn Records,
        &'r RecordKey,
    ) -> BoxFuture<'r, Result<Recorded<T>, Error>>
    + Clone
    + Send
    + 'static,
) -> Answers<T> {
    let mut answers = UnderWay::with_capacity(links.len());
    let alone = links.len() == 1;
    for (place, link) in links.iter().enumerate() {
        let (link, question, mut record) = (Arc::clone(link), question.clone(), record.clone());
        // Whoever uses a single server takes it as it is.
        record.lasting = record.lasting.filter(|_| !alone);
        answers.push(async move { (place, link.record(&record, question).await) });
    }
    answers
}
