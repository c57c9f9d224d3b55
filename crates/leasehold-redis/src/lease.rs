//! Renewing, releasing, sealing and healing: what stands is asked and changed in one script.

use leasehold::clock::BootInstant;
use leasehold::{Claim, Error, Fence, Held, LostReason, Mode, Release, Renewal, Sampled, Seal};

use crate::attempt::{garbled, milliseconds};
use crate::connection::{Answer, Command, Link, Refusal, Script, Unanswered};
use crate::sample;
use crate::scripts::{HEAL, RELEASE, RENEW, RIGHTS, SEAL};
use crate::wire::Records;

/// How many leases one run of a script renews or puts back: a server does nothing else meanwhile.
const AT_ONCE: usize = 64;

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
    }
}

/// Renews each of `leases`; the answers are in their order.
pub(crate) async fn renew(
    link: &Link,
    prefix: &str,
    leases: &[Held],
    now: BootInstant,
) -> Result<Sampled<Vec<Renewal>>, Error> {
    let calls: Vec<_> = leases
        .chunks(AT_ONCE)
        .map(|part| renewal(prefix, part))
        .collect();
    let count = calls.len();
    let mut after = Vec::from(sample::questions());
    if let Some(first) = leases.first() {
        after.extend(link.introduction(&first.claim.client, now));
    }
    let answers = link.run(&RENEW, calls, after).await?;
    if let Some(first) = leases.first() {
        link.note_introduced(first.claim.client.id, now);
    }
    let (answers, shown) = answers.split_at(count);
    let sample = sample::read(link, shown)?;
    let parts = leases.chunks(AT_ONCE).zip(answers);
    let answer = parts.flat_map(|(part, answer)| read_renewals(answer, part.len(), link));
    Ok(Sampled {
        answer: answer.collect(),
        sample,
    })
}

fn renewal(prefix: &str, leases: &[Held]) -> Command {
    let records: Vec<Records> = leases
        .iter()
        .map(|held| Records::of(prefix, &held.claim.key))
        .collect();
    let keys = records
        .iter()
        .flat_map(|records| [&*records.lock, &*records.fence, &*records.readers]);
    let keys: Vec<&str> = keys.collect();
    let arguments = leases.iter().flat_map(|Held { claim, .. }| {
        let ttl = milliseconds(claim.ttl).to_string();
        [word(claim.mode).to_owned(), claim.owner.to_string(), ttl]
    });
    let arguments: Vec<String> = arguments.collect();
    RENEW.call(&keys, &arguments)
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
fn own_refusal(answer: &Answer) -> Option<Refusal> {
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
    let answers = link.run(&HEAL, calls, Vec::new()).await?;
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
    let records: Vec<Records> = leases
        .iter()
        .map(|held| Records::of(prefix, &held.claim.key))
        .collect();
    let keys = records
        .iter()
        .flat_map(|records| [&*records.lock, &*records.fence]);
    let keys: Vec<&str> = keys.collect();
    let arguments = leases.iter().flat_map(|Held { claim, fence }| {
        let ttl = milliseconds(claim.ttl).to_string();
        [claim.owner.to_string(), ttl, fence.to_string()]
    });
    let arguments: Vec<String> = arguments.collect();
    HEAL.call(&keys, &arguments)
}

/// Frees the lock where `claim` holds it.
pub(crate) async fn release(
    link: &Link,
    records: &Records,
    claim: &Claim,
) -> Result<Release, Error> {
    let call = about(&RELEASE, records, claim, None);
    let answers = link.run(&RELEASE, vec![call], Vec::new()).await?;
    Ok(if read_done(&answers[0], link)? {
        Release::Released
    } else {
        Release::WasLost
    })
}

/// Raises the counter to `fence` where `claim` holds the lock.
pub(crate) async fn seal(
    link: &Link,
    records: &Records,
    claim: &Claim,
    fence: Fence,
) -> Result<Sampled<Seal>, Error> {
    let call = about(&SEAL, records, claim, Some(fence));
    let after = Vec::from(sample::questions());
    let answers = link.run(&SEAL, vec![call], after).await?;
    let answer = if read_done(&answers[0], link)? {
        Seal::Sealed
    } else {
        Seal::NotHeld
    };
    let sample = sample::read(link, &answers[1..])?;
    Ok(Sampled { answer, sample })
}

/// A call of a script about one claim.
fn about(script: &Script, records: &Records, claim: &Claim, fence: Option<Fence>) -> Command {
    let keys = [&*records.lock, &*records.fence, &*records.readers];
    let mut arguments = vec![word(claim.mode).to_owned(), claim.owner.to_string()];
    arguments.extend(fence.map(|fence| fence.to_string()));
    script.call(&keys, &arguments)
}

fn read_done(answer: &Answer, link: &Link) -> Result<bool, Error> {
    match answer {
        Answer::Integer(done) => Ok(*done == 1),
        Answer::Refused(refusal) => Err(refused(refusal, link)),
        _ => Err(garbled("a release or a seal")),
    }
}

/// A script may have done a part of its work when it ran into an error.
fn refused(refusal: &Refusal, link: &Link) -> Error {
    refusal.to_error(link.user(), RIGHTS).with_unknown_effect()
}
