//! Taking the lock alone without a script, which costs the server less than half.
//!
//! It need not be atomic: whoever is granted holds the lock until the counter has moved, and the
//! counter of a failed attempt only leaves a gap (design, "PLAIN").

use std::sync::Arc;

use leasehold::clock::BootInstant;
use leasehold::{Attempt, Claim, Error, Fence, Grant};

use crate::attempt::{Verdict, busy, garbled, granted, milliseconds};
use crate::connection::{Answer, Link, Replies, Writing};
use crate::rests::renew;
use crate::scripts::RIGHTS;
use crate::wire::{COUNTER, Records};

/// Makes one attempt on `link`, whose server knows SET with NX and GET at once. With what it showed
/// of itself after that.
pub(crate) async fn attempt(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    now: BootInstant,
) -> Result<(Verdict, Arc<[Answer]>), Error> {
    let owner = claim.owner.to_ascii();
    let is_behind = link.is_behind();
    let rests = link.rests().is_due(records, now);
    let introduction = link.introduction(&claim.client, now);
    let write = |out: &mut Writing<'_>| {
        out.command("SET").arg(records.lock()).arg(owner);
        out.arg("NX").arg("GET").arg("PX");
        out.number(milliseconds(claim.ttl));
        if is_behind {
            count(out, records, claim);
        } else {
            overtake(out, records, claim);
        }
        if rests {
            renew(out, records);
        }
        out.add_all(&introduction);
    };
    let Replies { answers, shown } = link.exchange_written(write, true).await?;
    if let Some(verdict) = denied(&answers[0], claim, link.user()) {
        return Ok((verdict, shown));
    }
    if is_behind {
        let verdict = read_count(&answers[1..3], link.user());
        link.note_behind(!is_next(&verdict, claim));
        return Ok((verdict, shown));
    }
    match &answers[1] {
        // It is above the counter, and the counter now.
        Answer::Integer(1) => Ok((own_fence(claim), shown)),
        Answer::Integer(0) => {
            link.note_behind(true);
            let write = |out: &mut Writing<'_>| count(out, records, claim);
            // In a box of its own: each attempt would have room for what is rare.
            let counting = Box::pin(link.exchange_written(write, true));
            let Replies { answers, shown } = counting.await?;
            Ok((read_count(&answers, link.user()), shown))
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

/// The fence rule, whatever the counter is: two commands.
fn count(out: &mut Writing<'_>, records: &Records<'_>, claim: &Claim) {
    out.command("ZADD").joined(&records.fence());
    out.arg("GT").number(claim.proposal.as_micros());
    out.arg(COUNTER);
    out.command("ZINCRBY").joined(&records.fence());
    out.arg("1").arg(COUNTER);
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

fn read_count(answers: &[Answer], user: &str) -> Verdict {
    match answers {
        [Answer::Refused(refusal), _] => {
            Verdict::Failed(refusal.to_error(user, RIGHTS).with_unknown_effect())
        }
        [_, drawn] => granted(drawn, user),
        _ => Verdict::Failed(garbled("ZINCRBY")),
    }
}

fn own_fence(claim: &Claim) -> Verdict {
    match next(claim) {
        Some(fence) => Verdict::Decided(Attempt::Granted(Grant::new(fence))),
        None => Verdict::Failed(garbled("ZADD")),
    }
}

/// Whether the counter was not ahead of the claim's clock.
fn is_next(verdict: &Verdict, claim: &Claim) -> bool {
    matches!(verdict, Verdict::Decided(Attempt::Granted(grant)) if Some(grant.fence) == next(claim))
}

fn next(claim: &Claim) -> Option<Fence> {
    Fence::new(claim.proposal.as_micros() + 1)
}
