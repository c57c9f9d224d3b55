use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::{Clock as _, SystemClock, WallTime, within};
use leasehold::{Error, ErrorKind, MemberId, MemberRecord, MemberStatus};
use leasehold_redis::RedisMember;

/// The state of one server as it reports it. Asking for this writes nothing, whereas a client updates the
/// records of the servers.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) id: MemberId,
    pub(super) presence: Result<MemberStatus, Error>,
    /// Its clock relative to ours, in microseconds, within half the round trip.
    pub(super) clock_offset: Option<i64>,
}

/// How long a server may take to answer.
const LIMIT: Duration = Duration::from_secs(2);

/// Asks all members at once.
pub(super) async fn ask_members(members: &[RedisMember]) -> Vec<Seen> {
    let asking = members.iter().map(|member| async {
        // The first answer includes the time to connect; only the second one can measure the clock.
        let first = limited(member.presence()).await;
        let asked = SystemClock.wall();
        let presence = match first {
            Ok(_) => limited(member.presence()).await,
            Err(error) => Err(error),
        };
        let answered = SystemClock.wall();
        let clock_offset = presence.as_ref().ok().map(|presence| {
            let ours = micros(asked).midpoint(micros(answered));
            micros(presence.clock) - ours
        });
        Seen {
            id: member.id().clone(),
            presence: presence.map_err(|error| error.with_store(member.id().as_str())),
            clock_offset,
        }
    });
    join_all(asking).await
}

/// The answer to `question`, or an error after the time limit.
pub(crate) async fn limited<T>(
    question: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let end = SystemClock.now() + LIMIT;
    let answer = within(&SystemClock, end, question).await;
    answer.unwrap_or_else(|| {
        let text = format!("no answer within {LIMIT:?}");
        Err(Error::new(ErrorKind::Unreachable, text))
    })
}

/// Whether no server that answers has a record of the quorum.
pub(super) fn is_unformed(seen: &[Seen]) -> bool {
    let answers = seen.iter().filter_map(|seen| seen.presence.as_ref().ok());
    have_no_record(seen.len(), answers)
}

/// Whether no server that answers has a record of the quorum, although there are enough `members` for one.
pub(crate) fn have_no_record<'a>(
    members: usize,
    mut answers: impl Iterator<Item = &'a MemberStatus> + Clone,
) -> bool {
    members >= 3
        && answers.clone().next().is_some()
        && answers.all(|it| {
            !it.member_record
                .as_ref()
                .is_some_and(MemberRecord::is_formed)
        })
}

fn micros(time: WallTime) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
