//! Taking the lock alone without a script, which costs the server less than half.
//!
//! It need not be atomic: whoever is granted holds the lock until the counter has moved, and the
//! counter of a failed attempt only leaves a gap (design, "PLAIN").

use std::sync::Arc;

use leasehold::clock::BootInstant;
use leasehold::{Attempt, Claim, Error, Fence, Grant};

use crate::attempt::{Verdict, busy, garbled, milliseconds, scripted};
use crate::connection::{Answer, Link, Replies, Writing};
use crate::rests::renew;
use crate::scripts::RIGHTS;
use crate::wire::{COUNTER, Records};

/// Whether readers can derive the fence of such an attempt: it is the first one above the instant that the
/// owner names. The script needs fewer trips if a counter was ahead of this machine's clock lately.
pub(crate) fn suits(claim: &Claim, link: &Link) -> bool {
    claim.owner.since() == claim.proposal && !link.is_behind()
}

/// Makes one attempt on `link`, whose server knows SET with NX and GET at once. With what it showed
/// of itself after that.
pub(crate) async fn attempt(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    now: BootInstant,
) -> Result<(Verdict, Arc<[Answer]>), Error> {
    let owner = claim.owner.to_ascii();
    let rests = link.rests().is_due(records, now);
    let introduction = link.introduction(&claim.client, now);
    let write = |out: &mut Writing<'_>| {
        out.command("SET").arg(records.lock()).arg(owner);
        out.arg("NX").arg("GET").arg("PX");
        out.number(milliseconds(claim.ttl));
        overtake(out, records, claim);
        if rests {
            renew(out, records);
        }
        out.add_all(&introduction);
    };
    let Replies { answers, shown } = link.exchange_written(write, true).await?;
    if let Some(verdict) = denied(&answers[0], claim, link.user()) {
        return Ok((verdict, shown));
    }
    match &answers[1] {
        // It is above the counter, and the counter now.
        Answer::Integer(1) => Ok((own_fence(claim), shown)),
        Answer::Integer(0) => {
            // The lock is taken. The script draws the fence, and notes it for readers.
            // In a box of its own: each attempt would have room for what is rare.
            let counting = Box::pin(scripted(link, records, claim, now));
            counting.await.map_err(Error::with_unknown_effect)
        }
        Answer::Refused(refusal) => {
            let error = refusal.to_error(link.user(), RIGHTS);
            Ok((Verdict::Failed(error.with_unknown_effect()), shown))
        }
        _ => Ok((Verdict::Failed(garbled("ZADD")), shown)),
    }
}

/// The fence rule, max(counter, proposal) + 1, where the counter is not above the proposal: mostly so,
/// as more microseconds pass than fences are drawn. One command then says all.
fn overtake(out: &mut Writing<'_>, records: &Records<'_>, claim: &Claim) {
    out.command("ZADD").joined(&records.fence());
    out.arg("GT").arg("CH");
    out.number(claim.proposal.as_micros() + 1).arg(COUNTER);
}

/// What the attempt came to, unless the lock was taken.
fn denied(answer: &Answer, claim: &Claim, user: &str) -> Option<Verdict> {
    match answer {
        Answer::Nil => None,
        // The answer to an earlier sending of this same attempt was lost.
        Answer::Text(value) if *value == claim.owner.to_ascii() => None,
        Answer::Text(value) => Some(Verdict::Decided(Attempt::Busy(busy(value)))),
        Answer::Refused(refusal) if refusal.is_wrong_type() => Some(Verdict::WrongType),
        Answer::Refused(refusal) => Some(Verdict::Failed(refusal.to_error(user, RIGHTS))),
        _ => Some(Verdict::Failed(garbled("SET"))),
    }
}

fn own_fence(claim: &Claim) -> Verdict {
    match next(claim) {
        Some(fence) => Verdict::Decided(Attempt::Granted(Grant::new(fence))),
        None => Verdict::Failed(garbled("ZADD")),
    }
}

pub(crate) fn next(claim: &Claim) -> Option<Fence> {
    Fence::new(claim.proposal.as_micros() + 1)
}
