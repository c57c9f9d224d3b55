//! Renewing, releasing and sealing: what stands is asked and changed in one script.

use futures_util::future::join_all;
use leasehold::clock::BootInstant;
use leasehold::{Claim, Error, Fence, Held, LostReason, Mode, Release, Renewal, Seal};

use crate::attempt::{garbled, milliseconds};
use crate::connection::{Answer, Link, Refusal, Script};
use crate::scripts::{RELEASE, RENEW, RIGHTS, SEAL};
use crate::wire::Records;

/// How many leases one run of the script renews: a server does nothing else meanwhile.
const RENEW_AT_ONCE: usize = 64;

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
) -> Vec<Renewal> {
    let parts = leases.chunks(RENEW_AT_ONCE);
    let parts = parts.map(|part| renew_part(link, prefix, part, now));
    join_all(parts).await.into_iter().flatten().collect()
}

async fn renew_part(link: &Link, prefix: &str, leases: &[Held], now: BootInstant) -> Vec<Renewal> {
    let Some(first) = leases.first() else {
        return Vec::new();
    };
    let records = leases
        .iter()
        .map(|held| Records::of(prefix, &held.claim.key));
    let records: Vec<Records> = records.collect();
    let keys = records
        .iter()
        .flat_map(|records| [&*records.lock, &*records.fence, &*records.readers]);
    let keys: Vec<&str> = keys.collect();
    let arguments = leases.iter().flat_map(|Held { claim, .. }| {
        let ttl = milliseconds(claim.ttl).to_string();
        [word(claim.mode).to_owned(), claim.owner.to_string(), ttl]
    });
    let arguments: Vec<String> = arguments.collect();
    let introduction = link.introduction(&first.claim.client, now);
    let answer = link.run(&RENEW, &keys, &arguments, introduction).await;
    if answer.is_ok() {
        link.note_introduced(first.claim.client.id, now);
    }
    let all = |error: Error| vec![Renewal::Unknown(error); leases.len()];
    match answer {
        Err(error) => all(error),
        Ok(Answer::Refused(refusal)) => all(refused(&refusal, link)),
        Ok(Answer::List(answers)) if answers.len() == leases.len() => answers
            .iter()
            .map(|answer| read_renewal(answer, link))
            .collect(),
        Ok(_) => all(garbled("a renewal")),
    }
}

fn read_renewal(answer: &Answer, link: &Link) -> Renewal {
    match answer {
        Answer::Integer(1) => Renewal::Renewed,
        Answer::Integer(0) => Renewal::Lost(LostReason::Gone),
        Answer::Integer(-1) => Renewal::Lost(LostReason::Taken),
        // The error of this one lease, its code in front from Redis 7.0 on.
        answer => match answer.as_text() {
            Some(text) => {
                let (code, rest) = text.split_once(' ').unwrap_or(("ERR", text));
                Renewal::Unknown(refused(&Refusal::new(code, rest), link))
            }
            None => Renewal::Unknown(garbled("a renewal")),
        },
    }
}

/// Frees the lock where `claim` holds it.
pub(crate) async fn release(
    link: &Link,
    records: &Records,
    claim: &Claim,
) -> Result<Release, Error> {
    let freed = ask(link, &RELEASE, records, claim, None).await?;
    Ok(if freed {
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
) -> Result<Seal, Error> {
    let sealed = ask(link, &SEAL, records, claim, Some(fence)).await?;
    Ok(if sealed { Seal::Sealed } else { Seal::NotHeld })
}

async fn ask(
    link: &Link,
    script: &Script,
    records: &Records,
    claim: &Claim,
    fence: Option<Fence>,
) -> Result<bool, Error> {
    let keys = [&*records.lock, &*records.fence, &*records.readers];
    let mut arguments = vec![word(claim.mode).to_owned(), claim.owner.to_string()];
    arguments.extend(fence.map(|fence| fence.to_string()));
    match link.run(script, &keys, &arguments, Vec::new()).await? {
        Answer::Integer(done) => Ok(done == 1),
        Answer::Refused(refusal) => Err(refused(&refusal, link)),
        _ => Err(garbled("a release or a seal")),
    }
}

/// A script may have done a part of its work when it ran into an error.
fn refused(refusal: &Refusal, link: &Link) -> Error {
    refusal.to_error(link.user(), RIGHTS).with_unknown_effect()
}
