//! Waiting in turn: attempts with a ticket, and what becomes of a lock that is freed.

use leasehold::clock::BootInstant;
use leasehold::{
    Attempt, Busy, Claim, Departure, Error, ErrorKind, Mode, Owner, Release, Ticket, Turn,
};

use crate::attempt::{
    Verdict, busy, check, duration, foreign_lock, garbled, granted, milliseconds,
    refused as denied, with_sample,
};
use crate::connection::{Answer, Command, Link, Replies, Script, Unanswered, Writing};
use crate::lease::{own_refusal, refused, word};
use crate::rests::renew;
use crate::scripts::{
    ACQUIRE_IN_TURN, ACQUIRE_PERMIT_IN_TURN, DEPART, DEPART_WITH_PERMIT, LEAVE_QUEUE, RIGHTS,
};
use crate::wire::{CARD, Records};
use crate::{hand_on, permit, sample};

/// Makes one attempt on `link`, in the order of tickets or ahead of it.
pub(crate) async fn acquire(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    turn: &Turn,
    now: BootInstant,
) -> Result<Attempt, Error> {
    check(claim, link.server_clock(now))?;
    // In front of the attempt: from the moment it is in the queue its waiter must hear.
    let listening = match turn {
        Turn::Queued(ticket) => Some(ticket.waiter.client()),
        Turn::Barging => None,
    };
    let subscription = listening.and_then(|client| Some((client, link.subscription(client)?)));
    let (subscriber, subscription) = subscription.unzip();
    let introduction = link.introduction(&claim.client, now);
    let unanswered = Unanswered::on(link);
    let script = script(claim.mode);
    let write = |out: &mut Writing<'_>| {
        out.add_all(&subscription);
        in_turn(out, script, records, claim, turn);
        out.add_all(&introduction);
    };
    let is_single = subscription.is_none() && introduction.is_empty();
    let may_be_next = claim.mode == Mode::Exclusive && matches!(turn, Turn::Queued(_));
    let Replies { answers, .. } = if is_single && may_be_next {
        hand_on::run(link, records, claim, turn, write).await?
    } else {
        link.run_written(script, write, false).await?
    };
    unanswered.answered();
    let mut answers = answers.iter();
    if let Some(client) = subscriber {
        let subscribed = answers.next().ok_or_else(|| garbled("SUBSCRIBE"))?;
        link.note_subscribed(client, subscribed);
    }
    let answer = answers.next().ok_or_else(|| garbled("an attempt"))?;
    match read(answer, claim, link) {
        Verdict::Decided(attempt) => Ok(attempt),
        Verdict::Failed(error) => Err(error),
        Verdict::WrongType => foreign_lock(link, records).await,
    }
}

fn script(mode: Mode) -> &'static Script {
    match mode {
        Mode::Exclusive | Mode::Shared => &ACQUIRE_IN_TURN,
        Mode::Permit(_) => &ACQUIRE_PERMIT_IN_TURN,
    }
}

/// An attempt by `script`, which may want more words behind these.
pub(crate) fn in_turn(
    out: &mut Writing<'_>,
    script: &Script,
    records: &Records<'_>,
    claim: &Claim,
    turn: &Turn,
) {
    let for_permit = matches!(claim.mode, Mode::Permit(_));
    let call = out.call(script, 6 + usize::from(for_permit));
    call.arg(records.lock()).joined(&records.fence());
    call.joined(&records.readers()).joined(&records.queue());
    call.joined(&records.offered()).arg(CARD);
    if for_permit {
        call.joined(&records.slots());
    }
    call.arg(&*word(claim.mode)).arg(claim.owner.to_ascii());
    call.number(milliseconds(claim.ttl));
    call.number(claim.proposal.as_micros());
    match turn {
        Turn::Queued(ticket) => call
            .arg(ticket.waiter.to_ascii())
            .number(ticket.since.as_micros()),
        Turn::Barging => call.arg("").arg(""),
    };
    if for_permit {
        call.arg(permit::wish(claim));
    }
}

fn keys(records: &Records<'_>) -> [String; 5] {
    [
        records.lock().to_owned(),
        records.fence().concat(),
        records.readers().concat(),
        records.queue().concat(),
        records.offered().concat(),
    ]
}

/// The waiter of a ticket, and since when it waits, as the scripts want them.
fn named(ticket: &Ticket) -> (String, String) {
    let since = ticket.since.as_micros();
    (ticket.waiter.to_string(), since.to_string())
}

fn read(answer: &Answer, claim: &Claim, link: &Link) -> Verdict {
    let (verdict, seen) = match answer {
        Answer::Refused(refusal) if refusal.is_wrong_type() => return Verdict::WrongType,
        Answer::Refused(refusal) => {
            let error = refusal.to_error(link.user(), RIGHTS);
            return Verdict::Failed(error.with_unknown_effect());
        }
        Answer::List(parts) => match parts.as_slice() {
            [Answer::Integer(1), Answer::List(seen), drawn] => (granted(drawn, link.user()), seen),
            [
                Answer::Integer(0),
                Answer::List(seen),
                value,
                left,
                place,
                free @ ..,
            ] => {
                let mut busy = busy_in_turn(value, left, place);
                busy.untold = !link.tells(claim.client.id);
                let busy = permit::with_free(busy, claim, value, free.first());
                (denied(busy), seen)
            }
            _ => return Verdict::Failed(garbled("the script of an attempt")),
        },
        _ => return Verdict::Failed(garbled("the script of an attempt")),
    };
    if let [_, _, _, unsaid] = seen.as_slice() {
        complain(link, unsaid);
    }
    let Verdict::Decided(attempt) = verdict else {
        return verdict;
    };
    match sample::read_seen(link, seen) {
        Some(sample) => Verdict::Decided(with_sample(attempt, sample)),
        None => Verdict::Failed(garbled("TIME")),
    }
}

fn busy_in_turn(value: &Answer, left: &Answer, place: &Answer) -> Busy {
    let mut busy = match value {
        Answer::Text(value) => busy(value),
        // The lock is left free for a while.
        _ => Busy::default(),
    };
    busy.remaining = duration(left);
    let place = place.as_integer().and_then(|place| place.try_into().ok());
    busy.place = place.filter(|place| *place > 0);
    busy
}

/// Frees the lock where `claim` holds it, and does with it what `departure` says.
pub(crate) async fn depart(
    link: &Link,
    records: &Records<'_>,
    claim: &Claim,
    departure: &Departure,
    now: BootInstant,
) -> Result<Release, Error> {
    let (script, call) = departing(records, claim, departure);
    let rests = link.rests().is_due(records, now);
    let write = |out: &mut Writing<'_>| {
        match &call {
            Departing::Alone => {
                alone(out, records);
                out.arg(claim.owner.to_ascii());
            }
            Departing::Otherwise(call) => out.add(call),
        }
        if rests {
            renew(out, records);
        }
    };
    let Replies { answers, .. } = link.run_written(script, write, false).await?;
    // Of a lock that was never granted here, as where the attempt got lost and its release did not.
    if let Some(Answer::Integer(0)) = answers.get(1) {
        link.rests().has_none(records);
    }
    match read_number(link, answers.first())? {
        1 => Ok(Release::Released),
        _ => Ok(Release::WasLost),
    }
}

/// How the script of a departure is called.
enum Departing {
    /// Mostly so, and then the script needs to know no more.
    Alone,
    Otherwise(Command),
}

/// The lock was held alone, by the owner that is the last word, and is handed over.
pub(crate) fn alone(out: &mut Writing<'_>, records: &Records<'_>) {
    out.call(&DEPART, 4).arg(records.lock());
    out.joined(&records.queue()).joined(&records.readers());
    out.joined(&records.offered());
}

fn departing(
    records: &Records<'_>,
    claim: &Claim,
    departure: &Departure,
) -> (&'static Script, Departing) {
    let mut arguments = match (claim.mode, departure) {
        (Mode::Exclusive, Departure::HandOver) => return (&DEPART, Departing::Alone),
        (_, Departure::HandOver) => vec!["hand over".to_owned()],
        (_, Departure::LeaveFree(span)) => {
            vec!["leave free".to_owned(), milliseconds(*span).to_string()]
        }
        (_, Departure::Requeue(ticket)) => {
            let (waiter, since) = named(ticket);
            vec!["requeue".to_owned(), waiter, since]
        }
    };
    let mode = word(claim.mode).into_owned();
    arguments.splice(0..0, [mode, claim.owner.to_string()]);
    let mut keys = Vec::from(keys(records));
    let script = match claim.mode {
        Mode::Exclusive | Mode::Shared => &*DEPART,
        Mode::Permit(_) => {
            keys.push(records.slots().concat());
            &*DEPART_WITH_PERMIT
        }
    };
    let call = script.call(&keys, &arguments);
    (script, Departing::Otherwise(call))
}

/// Takes `waiter` out of the queue.
pub(crate) async fn leave(link: &Link, records: &Records<'_>, waiter: Owner) -> Result<(), Error> {
    let mut keys = Vec::from(keys(records));
    keys.push(records.slots().concat());
    let call = LEAVE_QUEUE.call(&keys, &[waiter.to_string()]);
    let answers = link.run(&LEAVE_QUEUE, vec![call]).await?;
    read_number(link, answers.first()).map(drop)
}

/// The answer of a script: a number, or that and what it could not do besides.
fn read_number(link: &Link, answer: Option<&Answer>) -> Result<i64, Error> {
    match answer {
        Some(Answer::Integer(done)) => Ok(*done),
        Some(Answer::Refused(refusal)) => Err(refused(refusal, link)),
        Some(Answer::List(parts)) => match parts.as_slice() {
            [Answer::Integer(done), failure] => {
                complain(link, failure);
                Ok(*done)
            }
            _ => Err(garbled("a script")),
        },
        _ => Err(garbled("a script")),
    }
}

/// Nobody is kept from locking by what the server does not tell the others: they ask again.
pub(crate) fn complain(link: &Link, failure: &Answer) {
    if let Some(refusal) = own_refusal(failure) {
        let error = refusal.to_error(link.user(), RIGHTS);
        // Any other error is of one lock, or will pass.
        if error.kind() == ErrorKind::Refused {
            link.note_mute();
        }
        link.listener().complain(error.reason());
    }
}
