//! Looking at locks, for people: nothing here is atomic, and all of it may be over when it is read.

use std::collections::HashMap;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{ClientId, ClientInfo, Error, Fence, Holder, Mode, Owner, Ticket, Waiter};

use crate::attempt::garbled;
use crate::connection::{Answer, Command, Link, Refusal, Rights, read_time};
use crate::foreign::Form;
use crate::wire::{LockValue, Records, client_record, read_entry};

const LOOK_RIGHTS: Rights =
    Rights("+get +mget +pttl +type +exists +time +zrange +zscore +hgetall +scan");

/// At most so many readers of one lock are shown, and as many who wait for it.
const SHOWN_MAX: u64 = 1000;

pub(crate) async fn holders(link: &Link, records: &Records<'_>) -> Result<Vec<Holder>, Error> {
    let questions = vec![
        Command::new("GET").arg(records.lock()),
        Command::new("PTTL").arg(records.lock()),
    ];
    let answers = ask(link, questions, Refusal::is_wrong_type).await?;
    let [value, left] = answers.as_slice() else {
        return Err(garbled("GET"));
    };
    let remaining = left.as_integer().and_then(remaining);
    let found = match value {
        Answer::Nil => return Ok(Vec::new()),
        Answer::Text(value) => LockValue::read(value),
        Answer::Refused(_) => LockValue::Foreign(form_of_type(link, records).await?),
        _ => return Err(garbled("GET")),
    };
    let mut holders = match found {
        LockValue::Foreign(form) => vec![foreign(form, remaining)],
        LockValue::Owner(owner) | LockValue::Broken(owner) => {
            let question = noted(records, owner);
            let answers = ask(link, vec![question], Refusal::is_wrong_type).await?;
            vec![alone(found, owner, remaining, answers.first())]
        }
        LockValue::Shared => readers(link, records, Mode::Shared).await?,
        LockValue::Permits(permits) => readers(link, records, Mode::Permit(permits)).await?,
        LockValue::Reserved(..) => return Ok(Vec::new()),
    };
    name(link, holders.iter_mut()).await?;
    Ok(holders)
}

/// Says of each holder who it is, as far as it does.
pub(crate) async fn name<'a>(
    link: &Link,
    holders: impl Iterator<Item = &'a mut Holder>,
) -> Result<(), Error> {
    let holders: Vec<&mut Holder> = holders.collect();
    let owners = holders.iter().filter_map(|holder| holder.owner);
    let named = clients(link, owners).await?;
    for holder in holders {
        let client = holder.owner.and_then(|owner| named.get(&owner.client()));
        holder.client = client.cloned();
    }
    Ok(())
}

/// Asks for the fence of an exclusive lease. The counter tells nothing: refused attempts move it too.
pub(crate) fn noted(records: &Records<'_>, owner: Owner) -> Command {
    Command::new("ZSCORE")
        .joined(&records.fence())
        .arg(owner.to_string())
}

async fn form_of_type(link: &Link, records: &Records<'_>) -> Result<Form, Error> {
    let question = Command::new("TYPE").arg(records.lock());
    let answers = ask(link, vec![question], |_| false).await?;
    let kind = answers.first().and_then(Answer::as_text);
    Ok(Form::of_type(kind.unwrap_or_default()))
}

/// A holder of another library, which left a value of this form under the lock's name.
pub(crate) fn foreign(form: Form, remaining: Option<Duration>) -> Holder {
    let mut holder = holder(Mode::Exclusive, None, remaining);
    holder.form = Some(form.words());
    holder
}

/// Who holds the lock alone, or did until its lease was broken, with what is noted of it.
pub(crate) fn alone(
    found: LockValue,
    owner: Owner,
    remaining: Option<Duration>,
    noted: Option<&Answer>,
) -> Holder {
    let mut holder = holder(Mode::Exclusive, Some(owner), remaining);
    holder.fence = match noted {
        Some(Answer::Nil) => unnoted_fence(owner),
        // The note of a broken lease is below 0.
        Some(noted) => noted
            .as_score()
            .and_then(|fence| Fence::new(fence.abs() as u64)),
        None => None,
    };
    holder.broken = matches!(found, LockValue::Broken(_));
    holder
}

/// The fence of a lease without a note: the first one above its proposal, which is the instant that its
/// owner names. Every other fence is noted with the grant (`lua/lease.lua`, `note_fence`).
fn unnoted_fence(owner: Owner) -> Option<Fence> {
    let proposal = owner.since().as_micros();
    let fence = Fence::new(proposal + 1)?;
    (proposal > 0 && fence <= Fence::MAX).then_some(fence)
}

/// Who waits for the lock, the one for whom it is reserved first.
pub(crate) async fn waiters(link: &Link, records: &Records<'_>) -> Result<Vec<Waiter>, Error> {
    let questions = vec![
        // First: who comes out of the queue meanwhile is then found twice, and not at all otherwise.
        Command::new("ZRANGE")
            .joined(&records.queue())
            .arg("0")
            .number(SHOWN_MAX - 1)
            .arg("WITHSCORES"),
        Command::new("GET").arg(records.lock()),
    ];
    let answers = ask(link, questions, Refusal::is_wrong_type).await?;
    let [queue, value] = answers.as_slice() else {
        return Err(garbled("ZRANGE"));
    };
    if let Answer::Refused(refusal) = queue {
        return Err(refusal.to_error(link.user(), LOOK_RIGHTS));
    }
    let queue = queue.as_scored().ok_or_else(|| garbled("ZRANGE"))?;
    let queued = queue.into_iter().filter_map(|(entry, since)| {
        let (waiter, mode) = read_entry(entry)?;
        let since = WallTime::from_micros(since as u64);
        Some(Waiter::unknown(Ticket { since, waiter }, mode))
    });
    let reserved = match value {
        Answer::Text(value) => match LockValue::read(value) {
            LockValue::Reserved(ticket, mode) => Some(Waiter::unknown(ticket, mode)),
            _ => None,
        },
        _ => None,
    };
    let next = reserved.as_ref().map(|next| next.ticket.waiter);
    let queued = queued.filter(|waiter| Some(waiter.ticket.waiter) != next);
    let mut waiters: Vec<Waiter> = reserved.into_iter().chain(queued).collect();
    let named = clients(link, waiters.iter().map(|waiter| waiter.ticket.waiter)).await?;
    for waiter in &mut waiters {
        waiter.client = named.get(&waiter.ticket.waiter.client()).cloned();
    }
    Ok(waiters)
}

fn holder(mode: Mode, owner: Option<Owner>, remaining: Option<Duration>) -> Holder {
    let mut holder = match owner {
        Some(owner) => Holder::of(owner, mode),
        None => Holder::unknown(mode),
    };
    holder.remaining = remaining;
    holder
}

/// PTTL answers a negative number where there is no end, or no key any more.
pub(crate) fn remaining(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Who holds the lock together, in this mode.
async fn readers(link: &Link, records: &Records<'_>, mode: Mode) -> Result<Vec<Holder>, Error> {
    let questions = vec![Command::new("TIME"), those_together(records, SHOWN_MAX)];
    let answers = ask(link, questions, |_| false).await?;
    let [time, readers] = answers.as_slice() else {
        return Err(garbled("ZRANGE"));
    };
    let now = read_time(time).ok_or_else(|| garbled("TIME"))?;
    together(readers, mode, now).ok_or_else(|| garbled("ZRANGE"))
}

/// Asks who holds the lock together with others: those whose leases end last. In front of them may stand
/// any number that ended and were not removed yet.
pub(crate) fn those_together(records: &Records<'_>, shown_max: u64) -> Command {
    Command::new("ZRANGE")
        .joined(&records.readers())
        .arg("0")
        .number(shown_max - 1)
        .arg("REV")
        .arg("WITHSCORES")
}

/// Those whose lease stands at the instant `now` of the server.
pub(crate) fn together(answer: &Answer, mode: Mode, now: WallTime) -> Option<Vec<Holder>> {
    let readers = answer.as_scored()?.into_iter().rev();
    let holders = readers.filter_map(|(owner, ends_ms)| {
        let owner = owner.parse().ok()?;
        let ends = Duration::from_millis(ends_ms as u64);
        let left = ends.checked_sub(Duration::from_micros(now.as_micros()))?;
        Some(holder(mode, Some(owner), Some(left)))
    });
    Some(holders.collect())
}

/// Who the clients of `owners` say they are, as far as they do.
async fn clients(
    link: &Link,
    owners: impl Iterator<Item = Owner>,
) -> Result<HashMap<ClientId, ClientInfo>, Error> {
    let mut clients: Vec<ClientId> = owners.map(Owner::client).collect();
    clients.sort_unstable();
    clients.dedup();
    if clients.is_empty() {
        return Ok(HashMap::new());
    }
    let question = |client: &ClientId| Command::new("HGETALL").arg(client_record(*client));
    let answers = ask(link, clients.iter().map(question).collect(), |_| true).await?;
    let named = clients.into_iter().zip(&answers);
    let named = named.filter_map(|(client, answer)| Some((client, read_client(client, answer)?)));
    Ok(named.collect())
}

pub(crate) fn read_client(id: ClientId, answer: &Answer) -> Option<ClientInfo> {
    let fields = answer.as_list()?;
    let field = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        pairs.find(|pair| pair[0].as_text() == Some(name))?[1].as_text()
    };
    Some(ClientInfo::new(
        id,
        plain(field("host")?),
        field("pid")?.parse().ok()?,
        plain(field("program")?),
        WallTime::from_micros(field("since")?.parse().ok()?),
    ))
}

/// `text` on one line, without anything that a terminal would obey: whoever may write to the server can
/// have put it there.
pub(crate) fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Asks, and turns every refusal into an error unless it is `expected`.
pub(crate) async fn ask(
    link: &Link,
    questions: Vec<Command>,
    expected: impl Fn(&Refusal) -> bool,
) -> Result<Vec<Answer>, Error> {
    let answers = link.exchange(&questions).await?;
    for answer in &answers {
        match answer {
            Answer::Refused(refusal) if !expected(refusal) => {
                return Err(refusal.to_error(link.user(), LOOK_RIGHTS));
            }
            _ => {}
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_without_end_has_no_remaining_time() {
        assert_eq!(remaining(-1), None);
        assert_eq!(remaining(1500), Some(Duration::from_millis(1500)));
    }
}
