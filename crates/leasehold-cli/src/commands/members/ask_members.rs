use leasehold::Error;
use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::store::{MemberId, MemberSet, MemberStatus};
use leasehold_redis::{RedisMember, RedisStore};

use crate::output::quorum_shortfall::have_no_record;
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
pub(crate) fn stated_set(quorum: &RedisStore, seen: &[MemberReply]) -> MemberSet {
    let statuses = seen.iter().filter_map(|seen| seen.status.as_ref().ok());
    quorum.stated_set(statuses.filter_map(|status| status.member_record.as_ref()))
}

/// Asks all members at once.
pub(crate) async fn ask_members(members: &[RedisMember]) -> Vec<MemberReply> {
    let asking = members.iter().map(|member| async {
        // The first answer includes the time to connect; only the second one can measure the clock.
        member.status().await?;
        let asked = SystemClock.wall();
        let status = member.status().await?;
        let ours = micros(asked).midpoint(micros(SystemClock.wall()));
        let clock_offset = micros(status.clock) - ours;
        Ok((status, clock_offset))
    });
    let answers = ask_all(MEMBER_LIMIT, asking).await;
    let answers = members.iter().zip(answers);
    answers
        .map(|(member, answer)| MemberReply {
            id: member.id().clone(),
            clock_offset: answer.as_ref().ok().map(|(_, offset)| *offset),
            status: answer
                .map(|(status, _)| status)
                .map_err(|error| error.with_store(member.id().as_str())),
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
