use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::member::{MemberHealth, MemberId, MemberStatus, requests_run_in};
use leasehold::once::Once;
use leasehold::{Client, Error, ErrorKind};

use crate::commands::admin::members::ask_members::{MemberReply, is_uninitialized};
use crate::output::failure::Failure;

/// One server, and whether it has a vote.
#[derive(Debug)]
pub(super) struct MemberState {
    pub(super) id: MemberId,
    pub(super) status: Option<MemberStatus>,
    /// See [`MemberReply::clock_offset`].
    pub(super) clock_offset: Option<i64>,
    /// Why it has no vote, if so.
    pub(super) out: Option<NoVote>,
}

/// Why a server has no vote.
#[derive(Debug)]
pub(super) struct NoVote {
    pub(super) why: String,
    /// The time until it has a vote again, if known.
    pub(super) again: Option<Duration>,
}

/// The state of each server in `seen`, as `client` judges it, and the time until the quorum runs requests
/// ([`requests_run_in`]). A quorum that is not initialized is not judged, because a client would initialize it.
pub(super) async fn judge(
    client: &Client,
    seen: Vec<MemberReply>,
) -> Result<(Vec<MemberState>, Option<Duration>), Failure> {
    if is_uninitialized(&seen) {
        let states = seen.into_iter().map(MemberState::uninitialized);
        return Ok((states.collect(), None));
    }
    let health = health_with_votes(client).await?;
    let requests_in = requests_run_in(&health, Once::DEFAULT_RETENTION);
    let states = health.into_iter().zip(seen);
    let states = states.map(|(health, seen)| MemberState::judged(health, seen));
    Ok((states.collect(), requests_in))
}

/// The health of the servers, after the client has updated the records of those that restarted. Before
/// that, it is not known when they have a vote again.
async fn health_with_votes(client: &Client) -> Result<Vec<MemberHealth>, Error> {
    let end = SystemClock.now() + VOTE_TIMEOUT;
    loop {
        let health = client.health().await?;
        let is_pending = health.iter().any(|member| {
            let out = member.untrusted_reason.as_ref();
            out.is_some_and(|out| {
                out.eligible_after.is_none() && out.error.kind() == ErrorKind::Untrusted
            })
        });
        if !is_pending || SystemClock.now() >= end {
            return Ok(health);
        }
        let next = SystemClock.now() + Duration::from_millis(50);
        SystemClock.sleep_until(next).await;
    }
}

const VOTE_TIMEOUT: Duration = Duration::from_secs(2);

impl MemberState {
    fn uninitialized(seen: MemberReply) -> Self {
        let (status, why) = match seen.status {
            Ok(status) => (Some(status), "the quorum is not initialized".into()),
            Err(error) => (None, error.reason().into()),
        };
        Self {
            id: seen.id,
            status,
            clock_offset: seen.clock_offset,
            out: Some(NoVote { why, again: None }),
        }
    }

    fn judged(health: MemberHealth, seen: MemberReply) -> Self {
        let (status, out) = match health.status {
            Ok(status) => {
                let out = health.untrusted_reason.map(|out| NoVote {
                    why: out.error.reason().into(),
                    again: out.eligible_after,
                });
                (Some(status), out)
            }
            Err(error) => {
                // The first answer waited longer for the server than the client does.
                let error = seen.status.err().unwrap_or(error);
                let why = error.reason().into();
                (None, Some(NoVote { why, again: None }))
            }
        };
        Self {
            id: health.id,
            status,
            clock_offset: seen.clock_offset,
            out,
        }
    }
}
