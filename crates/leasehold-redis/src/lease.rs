//! Renewing, sealing and healing: what stands is asked and changed in one script.

use std::borrow::Cow;

use leasehold::clock::BootInstant;
use leasehold::{Claim, Error, Fence, Held, LostReason, Mode, Renewal, Sampled, Seal};

use crate::attempt::{garbled, milliseconds, read_fence};
use crate::connection::{Answer, Command, Link, Refusal, Replies, Unanswered, Writing};
use crate::sample;
use crate::scripts::{HEAL, RENEW, RIGHTS, SEAL};
use crate::wire::Records;

/// How many leases one run of a script renews or puts back: a server does nothing else meanwhile.
const AT_ONCE: usize = 64;

/// The mode as the scripts want it.
pub(crate) fn word(mode: Mode) -> Cow<'static, str> {
    match mode {
        Mode::Exclusive => "exclusive".into(),
        Mode::Shared => "shared".into(),
        Mode::Permit(permits) => format!("permits:{permits}").into(),
    }
}

/// Renews each of `leases`; the answers are in their order.
pub(crate) async fn renew(
    link: &Link,
    prefix: &str,
    leases: &[Held],
    now: BootInstant,
) -> Result<Sampled<Vec<Renewal>>, Error> {
    let introduction = match leases.first() {
        Some(first) => link.introduction(&first.claim.client, now),
        None => Vec::new(),
    };
    let write = |out: &mut Writing<'_>| {
        leases
            .chunks(AT_ONCE)
            .for_each(|part| write_renewal(out, prefix, part));
        out.add_all(&introduction);
    };
    let Replies { answers, shown } = link.run_written(&RENEW, write, true).await?;
    let sample = sample::read(link, &shown)?;
    let parts = leases.chunks(AT_ONCE).zip(answers.iter());
    let answer = parts.flat_map(|(part, answer)| read_renewals(answer, part.len(), link));
    Ok(Sampled {
        answer: answer.collect(),
        sample,
    })
}

/// Word by word where it will be read from: to put them together first would take as long as all else
/// that a client does for a renewal.
fn write_renewal(out: &mut Writing<'_>, prefix: &str, leases: &[Held]) {
    let has_slots = |claim: &Claim| matches!(claim.mode, Mode::Permit(_));
    let slots = leases.iter().filter(|held| has_slots(&held.claim)).count();
    let call = out.call(&RENEW, 3 * leases.len() + slots);
    for Held { claim, .. } in leases {
        let records = Records::of(prefix, &claim.key);
        call.arg(records.lock()).joined(&records.fence());
        call.joined(&records.readers());
        if has_slots(claim) {
            call.joined(&records.slots());
        }
    }
    for Held { claim, fence } in leases {
        call.arg(&*word(claim.mode)).arg(claim.owner.to_ascii());
        call.number(milliseconds(claim.ttl)).number(fence.get());
    }
}

fn read_renewals(answer: &Answer, count: usize, link: &Link) -> Vec<Renewal> {
    match answer {
        Answer::List(answers) if answers.len() == count => answers
            .iter()
            .map(|answer| read_renewal(answer, link))
            .collect(),
        Answer::Refused(refusal) => vec![Renewal::Unknown(refused(refusal, link)); count],
        _ => vec![Renewal::Unknown(garbled("a renewal")); count],
    }
}

fn read_renewal(answer: &Answer, link: &Link) -> Renewal {
    match answer {
        Answer::Integer(1) => Renewal::Renewed,
        Answer::Integer(0) => Renewal::Lost(LostReason::Gone),
        Answer::Integer(-1) => Renewal::Lost(LostReason::Taken),
        Answer::Integer(-2) => Renewal::Lost(LostReason::Broken),
        answer => Renewal::Unknown(match own_refusal(answer) {
            Some(refusal) => refused(&refusal, link),
            None => garbled("a renewal"),
        }),
    }
}

/// The error that one lease of many ran into: a text, its code in front from Redis 7.0 on.
pub(crate) fn own_refusal(answer: &Answer) -> Option<Refusal> {
    let text = answer.as_text()?;
    let (code, rest) = text.split_once(' ').unwrap_or(("ERR", text));
    Some(Refusal::new(code, rest))
}

/// Puts the exclusive ones of `leases` back where their keys are free.
pub(crate) async fn heal(link: &Link, prefix: &str, leases: &[Held]) -> Result<(), Error> {
    let exclusive = leases
        .iter()
        .filter(|held| held.claim.mode == Mode::Exclusive);
    let exclusive: Vec<&Held> = exclusive.collect();
    let calls = exclusive.chunks(AT_ONCE).map(|part| healing(prefix, part));
    let calls: Vec<_> = calls.collect();
    if calls.is_empty() {
        return Ok(());
    }
    // Like an attempt: what its caller has given up must not put a lease back after its release.
    let unanswered = Unanswered::on(link);
    let answers = link.run(&HEAL, calls).await?;
    unanswered.answered();
    for answer in &answers {
        let outcomes = match answer {
            Answer::List(outcomes) => outcomes,
            Answer::Refused(refusal) => return Err(refused(refusal, link)),
            _ => return Err(garbled("a healing")),
        };
        if let Some(refusal) = outcomes.iter().find_map(own_refusal) {
            return Err(refused(&refusal, link));
        }
    }
    Ok(())
}

fn healing(prefix: &str, leases: &[&Held]) -> Command {
    let records: Vec<Records<'_>> = leases
        .iter()
        .map(|held| Records::of(prefix, &held.claim.key))
        .collect();
    let keys = records.iter().flat_map(|records| {
        [
            records.lock().to_owned(),
            records.fence().concat(),
            records.offered().concat(),
        ]
    });
    let keys: Vec<String> = keys.collect();
    let arguments = leases.iter().flat_map(|Held { claim, fence }| {
        let ttl = milliseconds(claim.ttl).to_string();
        [claim.owner.to_string(), ttl, fence.to_string()]
    });
    let arguments: Vec<String> = arguments.collect();
    HEAL.call(&keys, &arguments)
}

/// Raises the counter to `fence` where `claim` holds the lock; where it may hold it with others, only
/// from below.
pub(crate) async fn seal(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    fence: Fence,
) -> Result<Sampled<Seal>, Error> {
    let keys = [
        records.lock().to_owned(),
        records.fence().concat(),
        records.readers().concat(),
    ];
    let mode = word(claim.mode).into_owned();
    let arguments = [mode, claim.owner.to_string(), fence.to_string()];
    let calls = vec![SEAL.call(&keys, &arguments)];
    let Replies { answers, shown } = link.run_shown(&SEAL, calls).await?;
    let answer = match &answers[0] {
        Answer::Integer(1) => Seal::Sealed,
        Answer::Integer(_) => Seal::NotHeld,
        Answer::List(taken) if taken.len() == 1 => Seal::Taken(read_fence(&taken[0])?),
        Answer::Refused(refusal) => return Err(refused(refusal, link)),
        _ => return Err(garbled("a seal")),
    };
    let sample = sample::read(link, &shown)?;
    Ok(Sampled { answer, sample })
}

/// A script may have done a part of its work when it ran into an error.
pub(crate) fn refused(refusal: &Refusal, link: &Link) -> Error {
    refusal.to_error(link.user(), RIGHTS).with_unknown_effect()
}
