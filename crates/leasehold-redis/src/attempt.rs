//! Taking the lock: what is sent, and what the answers mean.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{BootInstant, WallTime};
use leasehold::{Attempt, Busy, Claim, Error, ErrorKind, Fence, Grant, Mode, Sample};

use crate::connection::{Answer, Command, Link, Refusal, Replies, Script, Unanswered};
use crate::lease::word;
use crate::scripts::{ACQUIRE_EXCLUSIVE, ACQUIRE_PERMIT, ACQUIRE_SHARED, RIGHTS};
use crate::wire::{LockValue, Records};
use crate::{permit, plain, sample};

/// What one attempt came to, before a foreign lock was looked at more closely.
#[derive(Debug)]
pub(crate) enum Verdict {
    Decided(Attempt),
    /// The lock key holds a value that is not a string.
    WrongType,
    Failed(Error),
}

/// Milliseconds for PX: a TTL of zero would delete the key.
pub(crate) fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Refuses a proposal that would lead fences astray, before anything of it is sent.
pub(crate) fn check(claim: &Claim, server_clock: Option<WallTime>) -> Result<(), Error> {
    let proposal = claim.proposal;
    let refuse = |rule: String| Err(Error::new(ErrorKind::InvalidInput, rule));
    if proposal.as_micros() >= Fence::MAX.get() {
        return refuse(format!(
            "the client's wall clock says {} µs since 1970: at most {} fit into a fence",
            proposal.as_micros(),
            Fence::MAX
        ));
    }
    let apart = server_clock.map_or(Duration::ZERO, |clock| clock.distance(proposal));
    if apart > CLOCKS_APART_MAX {
        return refuse(format!(
            "this machine's clock and the server's are {:.1} days apart: at most 1 is allowed, \
             since fences follow the clock",
            apart.as_secs_f64() / CLOCKS_APART_MAX.as_secs_f64()
        ));
    }
    permit::check(claim)
}

const CLOCKS_APART_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Makes one attempt on `link`.
pub(crate) async fn acquire(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    now: BootInstant,
) -> Result<Attempt, Error> {
    check(claim, link.server_clock(now))?;
    let unanswered = Unanswered::on(link);
    let is_plain = claim.mode == Mode::Exclusive && link.has_set_nx_get();
    let (verdict, shown) = if is_plain && plain::suits(claim, link) {
        plain::attempt(link, records, claim, now).await?
    } else {
        scripted(link, records, claim, now).await?
    };
    unanswered.answered();
    match verdict {
        // There is none only where the server may not be asked for its time.
        Verdict::Decided(attempt) => Ok(match sample::read(link, &shown) {
            Ok(sample) => with_sample(attempt, sample),
            Err(_) => attempt,
        }),
        Verdict::Failed(error) => Err(error),
        Verdict::WrongType => foreign_lock(link, records).await,
    }
}

pub(crate) fn with_sample(attempt: Attempt, sample: Sample) -> Attempt {
    match attempt {
        Attempt::Granted(grant) => Attempt::Granted(grant.with_sample(sample)),
        Attempt::Busy(busy) => Attempt::Busy(busy.with_sample(sample)),
    }
}

/// Makes one attempt by a script. With what the server showed of itself after that.
pub(crate) async fn scripted(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    now: BootInstant,
) -> Result<(Verdict, Arc<[Answer]>), Error> {
    let (script, call) = scripted_attempt(records, claim);
    let mut commands = vec![call];
    commands.extend(link.introduction(&claim.client, now));
    let Replies { answers, shown } = link.run_shown(script, commands).await?;
    let verdict = read_script(&answers[0], claim, link.user());
    if let Verdict::Decided(Attempt::Granted(grant)) = &verdict {
        link.note_behind(Some(grant.fence) != plain::next(claim));
    }
    Ok((verdict, shown))
}

fn scripted_attempt(records: &Records<'_>, claim: &Claim) -> (&'static Script, Command) {
    let mut keys = vec![
        records.lock().to_owned(),
        records.fence().concat(),
        records.readers().concat(),
        records.queue().concat(),
    ];
    let mut arguments = vec![
        claim.owner.to_string(),
        milliseconds(claim.ttl).to_string(),
        claim.proposal.as_micros().to_string(),
    ];
    let script = match claim.mode {
        Mode::Exclusive => &*ACQUIRE_EXCLUSIVE,
        Mode::Shared => &*ACQUIRE_SHARED,
        Mode::Permit(_) => {
            keys.push(records.slots().concat());
            arguments.extend([word(claim.mode).into_owned(), permit::wish(claim)]);
            &*ACQUIRE_PERMIT
        }
    };
    (script, script.call(&keys, &arguments))
}

fn read_script(answer: &Answer, claim: &Claim, user: &str) -> Verdict {
    if let Answer::Refused(refusal) = answer {
        if refusal.is_wrong_type() {
            return Verdict::WrongType;
        }
        return Verdict::Failed(refusal.to_error(user, RIGHTS).with_unknown_effect());
    }
    match answer.as_list() {
        Some([Answer::Integer(1), drawn]) => granted(drawn, user),
        Some([Answer::Integer(0), value @ Answer::Text(text), told @ ..]) => {
            let mut busy = busy(text);
            busy.remaining = told.first().and_then(duration);
            refused(permit::with_free(busy, claim, value, told.get(1)))
        }
        _ => Verdict::Failed(garbled("the script of an attempt")),
    }
}

pub(crate) fn granted(drawn: &Answer, user: &str) -> Verdict {
    let fence = match drawn {
        Answer::Refused(refusal) => Err(refusal.to_error(user, RIGHTS)),
        drawn => read_fence(drawn),
    };
    match fence {
        Ok(fence) => Verdict::Decided(Attempt::Granted(Grant::new(fence))),
        Err(error) => Verdict::Failed(error.with_unknown_effect()),
    }
}

pub(crate) fn refused(busy: Result<Busy, Error>) -> Verdict {
    match busy {
        Ok(busy) => Verdict::Decided(Attempt::Busy(busy)),
        Err(error) => Verdict::Failed(error),
    }
}

/// A number of milliseconds; nothing where it is negative, which says that there is no end.
pub(crate) fn duration(answer: &Answer) -> Option<Duration> {
    let milliseconds = u64::try_from(answer.as_integer()?).ok()?;
    Some(Duration::from_millis(milliseconds))
}

/// What the value of a lock key tells one who may not have the lock.
pub(crate) fn busy(value: &[u8]) -> Busy {
    let mut busy = Busy::default();
    match LockValue::read(value) {
        LockValue::Owner(owner) => busy.holder = Some(owner),
        LockValue::Foreign(_) => busy.silent = true,
        LockValue::Shared
        | LockValue::Permits(_)
        | LockValue::Reserved(..)
        | LockValue::Broken(_) => {}
    }
    busy
}

/// Scores are doubles, which servers may write with an exponent: exact up to [`Fence::MAX`].
pub(crate) fn read_fence(drawn: &Answer) -> Result<Fence, Error> {
    let score = drawn.as_score().ok_or_else(|| garbled("ZINCRBY"))?;
    let exact = score.fract() == 0.0 && (1.0..=Fence::MAX.get() as f64).contains(&score);
    let fence = exact.then(|| Fence::new(score as u64)).flatten();
    fence.ok_or_else(|| {
        let text = format!(
            "the counter of this lock says {score}, which is no fence (1 to {}): delete the \
             record leasehold:fence:… while nobody holds the lock",
            Fence::MAX
        );
        Error::new(ErrorKind::Corrupt, text)
    })
}

/// Another library's lock of another type is under the key, or one of our records is damaged: the
/// type of the lock key tells.
pub(crate) async fn foreign_lock(link: &Link, records: &Records<'_>) -> Result<Attempt, Error> {
    let question = Command::new("TYPE").arg(records.lock());
    let answers = link.exchange(&[question]).await?;
    let kind = answers.first().and_then(Answer::as_text);
    if let Some("none" | "string") = kind {
        let record = Refusal::new("WRONGTYPE", "");
        return Err(record.to_error(link.user(), RIGHTS).with_unknown_effect());
    }
    let kind = kind.unwrap_or("value that is not a string");
    let message = format!(
        "another library's lock is under the key: a {kind}, as Redisson writes one, which cannot \
         exclude ours; use another name, or keep the two apart with ?prefix="
    );
    Err(Error::new(ErrorKind::ForeignLock, message))
}

pub(crate) fn garbled(what: &str) -> Error {
    let message = format!("the answer to {what} makes no sense");
    Error::new(ErrorKind::Garbled, message).with_unknown_effect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Answer {
        Answer::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn fences_are_exact_in_either_notation() {
        let read = |score: &str| read_fence(&text(score)).map(Fence::get);
        assert_eq!(read("1763637400000001").unwrap(), 1_763_637_400_000_001);
        assert_eq!(read("1.7636374e+15").unwrap(), 1_763_637_400_000_000);
        assert_eq!(read("9007199254740991").unwrap(), Fence::MAX.get());
        for damaged in ["9007199254740992", "0", "-5", "1.5", "inf"] {
            assert_eq!(read(damaged).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        assert_eq!(read("many").unwrap_err().kind(), ErrorKind::Garbled);
    }
}
