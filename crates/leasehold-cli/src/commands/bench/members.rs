use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::{MemberHealth, MemberId, MemberStatus};
use leasehold::{Client, Error, Key};
use leasehold_redis::RedisMember;

use super::plan::{Part, Plan};
use super::statistics::Spread;
use crate::output::failure::Failure;
use crate::store::limit::{MEMBER_LIMIT, limited};

/// The measurements of one server.
#[derive(Debug)]
pub(super) struct MemberFigures {
    pub(super) id: MemberId,
    /// Whether it has a vote.
    pub(super) counts: bool,
    /// Why it does not answer, or has no vote.
    pub(super) reason: Option<String>,
    /// Of the smallest request, for the holder of a free lock. `None` if it does not answer.
    pub(super) round_trip: Option<Spread>,
}

/// Measures the servers one after another; `reached` holds their first answers.
pub(super) async fn round_trips(
    members: &[RedisMember],
    reached: &[Result<MemberStatus, Error>],
    client: &Client,
    plan: &Plan,
) -> Result<Vec<MemberFigures>, Failure> {
    let health = client.health().await?;
    let key = Key::new(plan.one())?;
    let answering = reached.iter().filter(|first| first.is_ok()).count();
    let each = plan.span(Part::RoundTrips) / u32::try_from(answering.max(1)).unwrap_or(u32::MAX);
    let mut figures = Vec::new();
    for (member, first) in members.iter().zip(reached) {
        let samples = match first {
            Ok(_) => sample(member, &key, each).await,
            Err(error) => Err(error.clone()),
        };
        let judged = health.iter().find(|health| health.id == *member.id());
        figures.push(MemberFigures::of(member.id().clone(), samples, judged));
    }
    Ok(figures)
}

async fn sample(member: &RedisMember, key: &Key, span: Duration) -> Result<Vec<Duration>, Error> {
    let end = SystemClock.now() + span;
    let mut samples = Vec::new();
    loop {
        let asked = SystemClock.now();
        limited(MEMBER_LIMIT, member.holders(key)).await?;
        let answered = SystemClock.now();
        samples.push(answered.since(asked));
        if answered >= end {
            return Ok(samples);
        }
    }
}

impl MemberFigures {
    fn of(
        id: MemberId,
        samples: Result<Vec<Duration>, Error>,
        health: Option<&MemberHealth>,
    ) -> Self {
        let no_vote = health.and_then(|health| match (&health.status, &health.untrusted_reason) {
            (Err(error), _) => Some(error.reason().to_owned()),
            (Ok(_), Some(out)) => Some(out.error.reason().to_owned()),
            (Ok(_), None) => None,
        });
        match samples {
            Ok(samples) => Self {
                id,
                counts: no_vote.is_none(),
                reason: no_vote,
                round_trip: Spread::of(samples),
            },
            Err(error) => Self {
                id,
                counts: false,
                reason: Some(error.reason().to_owned()),
                round_trip: None,
            },
        }
    }
}
