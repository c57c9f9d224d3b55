use leasehold::Error;
use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::member::{MemberId, MemberSet, MemberStatus};

use crate::output::quorum_shortfall::have_no_record;
use crate::store::Quorum;
use crate::store::limit::{MEMBER_LIMIT, ask_all};

/// The state of one server as it reports it. Asking for this writes nothing, whereas a client updates the
/// records of the servers.
#[derive(Debug)]
pub(crate) struct MemberReply {
    pub(crate) id: MemberId,
    pub(crate) status: Result<MemberStatus, Error>,
    /// Its clock relative to ours, in microseconds, within half the round trip.
    pub(crate) clock_offset: Option<i64>,
}

/// Returns the quorum, with the limits that these servers state.
pub(crate) fn stated_set(quorum: &Quorum, seen: &[MemberReply]) -> MemberSet {
    let statuses = seen.iter().filter_map(|seen| seen.status.as_ref().ok());
    let records = statuses.filter_map(|status| status.member_record.as_ref());
    quorum.stated_set(&records.collect::<Vec<_>>())
}

/// Asks all members at once.
pub(crate) async fn ask_members(quorum: &Quorum) -> Vec<MemberReply> {
    let ids = quorum.ids();
    let asking = (0..ids.len()).map(|index| async move {
        // The first answer includes the time to connect; only the second one can measure the clock.
        quorum.status(index).await?;
        let asked = SystemClock.wall();
        let status = quorum.status(index).await?;
        let ours = micros(asked).midpoint(micros(SystemClock.wall()));
        let clock_offset = micros(status.clock) - ours;
        Ok((status, clock_offset))
    });
    let answers = ask_all(MEMBER_LIMIT, asking).await;
    let answers = ids.into_iter().zip(answers);
    answers
        .map(|(id, answer)| MemberReply {
            clock_offset: answer.as_ref().ok().map(|(_, offset)| *offset),
            status: answer
                .map(|(status, _)| status)
                .map_err(|error| error.with_store(id.to_string())),
            id,
        })
        .collect()
}

/// Whether no server that answers has a record of the quorum.
pub(crate) fn is_uninitialized(seen: &[MemberReply]) -> bool {
    let answers = seen.iter().filter_map(|seen| seen.status.as_ref().ok());
    have_no_record(seen.len(), answers)
}

fn micros(time: WallTime) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
