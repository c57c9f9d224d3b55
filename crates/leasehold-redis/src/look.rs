//! Looking at locks, for people: nothing here is atomic, and all of it may be over when it is read.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::{ClientId, ClientInfo, Error, Holder, Key, Mode, Owner, Ticket, Waiter};

use crate::attempt::garbled;
use crate::connection::{Answer, Command, Link, Refusal, Rights, read_time};
use crate::wire::{LockValue, Records, client_record, read_entry};

const LOOK_RIGHTS: Rights = Rights("+get +mget +pttl +time +zrange +hgetall +scan");

/// At most so many readers of one lock are shown, and as many who wait for it.
const SHOWN_MAX: u64 = 1000;

/// How many keys the server looks at before it does something else.
const SCAN_STEP: u64 = 512;

pub(crate) async fn holders(link: &Link, records: &Records) -> Result<Vec<Holder>, Error> {
    let questions = vec![
        Command::new("GET").arg(&records.lock),
        Command::new("PTTL").arg(&records.lock),
    ];
    let answers = ask(link, questions, Refusal::is_wrong_type).await?;
    let [value, left] = answers.as_slice() else {
        return Err(garbled("GET"));
    };
    let remaining = left.as_integer().and_then(remaining);
    let found = match value {
        Answer::Nil => return Ok(Vec::new()),
        Answer::Text(value) => LockValue::read(value),
        Answer::Refused(_) => LockValue::Foreign,
        _ => return Err(garbled("GET")),
    };
    let mut holders = match found {
        LockValue::Foreign => vec![holder(Mode::Exclusive, None, remaining)],
        LockValue::Owner(owner) => vec![holder(Mode::Exclusive, Some(owner), remaining)],
        LockValue::Shared => readers(link, records, Mode::Shared).await?,
        LockValue::Permits(permits) => readers(link, records, Mode::Permit(permits)).await?,
        LockValue::Reserved(..) => return Ok(Vec::new()),
    };
    let owners = holders.iter().filter_map(|holder| holder.owner);
    let named = clients(link, owners).await?;
    for holder in &mut holders {
        let client = holder.owner.and_then(|owner| named.get(&owner.client()));
        holder.client = client.cloned();
    }
    Ok(holders)
}

/// Who waits for the lock, the one for whom it is reserved first.
pub(crate) async fn waiters(link: &Link, records: &Records) -> Result<Vec<Waiter>, Error> {
    let questions = vec![
        // First: who comes out of the queue meanwhile is then found twice, and not at all otherwise.
        Command::new("ZRANGE")
            .joined(&records.queue())
            .arg("0")
            .number(SHOWN_MAX - 1)
            .arg("WITHSCORES"),
        Command::new("GET").arg(&records.lock),
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
    let mut holder = Holder::unknown(mode);
    holder.owner = owner;
    holder.remaining = remaining;
    // The counter moves with every attempt, refused ones too: it is not the holder's fence.
    holder.fence = None;
    holder
}

/// PTTL answers a negative number where there is no end, or no key any more.
fn remaining(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Who holds the lock together, in this mode.
async fn readers(link: &Link, records: &Records, mode: Mode) -> Result<Vec<Holder>, Error> {
    let questions = vec![
        Command::new("TIME"),
        Command::new("ZRANGE")
            .joined(&records.readers())
            .arg("0")
            .number(SHOWN_MAX - 1)
            .arg("WITHSCORES"),
    ];
    let answers = ask(link, questions, |_| false).await?;
    let [time, readers] = answers.as_slice() else {
        return Err(garbled("ZRANGE"));
    };
    let now = read_time(time).ok_or_else(|| garbled("TIME"))?;
    let readers = readers.as_scored().ok_or_else(|| garbled("ZRANGE"))?;
    let holders = readers.into_iter().filter_map(|(owner, ends_ms)| {
        let owner = owner.parse().ok()?;
        let ends = Duration::from_millis(ends_ms as u64);
        let left = ends.checked_sub(Duration::from_micros(now.as_micros()))?;
        Some(holder(mode, Some(owner), Some(left)))
    });
    Ok(holders.collect())
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

fn read_client(id: ClientId, answer: &Answer) -> Option<ClientInfo> {
    let fields = answer.as_list()?;
    let field = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        pairs.find(|pair| pair[0].as_text() == Some(name))?[1].as_text()
    };
    Some(ClientInfo::new(
        id,
        field("host")?.to_owned(),
        field("pid")?.parse().ok()?,
        field("program")?.to_owned(),
        WallTime::from_micros(field("since")?.parse().ok()?),
    ))
}

/// The locks of this library whose names begin with `name_prefix`.
pub(crate) async fn list(
    link: &Link,
    key_prefix: &str,
    name_prefix: &str,
    limit: usize,
) -> Result<Vec<Key>, Error> {
    let pattern = format!("{}*", escaped(&format!("{key_prefix}{name_prefix}")));
    // A server may name a key twice while its table grows.
    let mut found = HashSet::new();
    let mut cursor = "0".to_owned();
    while found.len() < limit {
        let question = Command::new("SCAN")
            .arg(&cursor)
            .arg("MATCH")
            .arg(&pattern)
            .arg("COUNT")
            .number(SCAN_STEP)
            .arg("TYPE")
            .arg("string");
        let answers = ask(link, vec![question], |_| false).await?;
        let Some([next, Answer::List(keys)]) = answers.first().and_then(Answer::as_list) else {
            return Err(garbled("SCAN"));
        };
        found.extend(held_by_us(link, key_prefix, keys).await?);
        cursor = next.as_text().ok_or_else(|| garbled("SCAN"))?.to_owned();
        if cursor == "0" {
            break;
        }
    }
    Ok(found.into_iter().take(limit).collect())
}

/// Any string may be another library's lock, and most strings in a database are none: only what
/// this library wrote is certainly a lock.
async fn held_by_us(link: &Link, key_prefix: &str, keys: &[Answer]) -> Result<Vec<Key>, Error> {
    let keys: Vec<&str> = keys.iter().filter_map(Answer::as_text).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let question = keys.iter().fold(Command::new("MGET"), Command::arg);
    let answers = ask(link, vec![question], |_| false).await?;
    let values = answers.first().and_then(Answer::as_list);
    let values = values.ok_or_else(|| garbled("MGET"))?;
    let held = keys.iter().zip(values).filter_map(|(key, value)| {
        let Answer::Text(value) = value else {
            return None;
        };
        let value = LockValue::read(value);
        let ours = matches!(
            value,
            LockValue::Owner(_) | LockValue::Shared | LockValue::Permits(_)
        );
        let name = key.strip_prefix(key_prefix)?;
        ours.then(|| Key::new(name).ok()).flatten()
    });
    Ok(held.collect())
}

/// `text` as a glob pattern that matches itself alone.
pub(crate) fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Asks, and turns every refusal into an error unless it is `expected`.
async fn ask(
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
    fn a_prefix_is_taken_literally() {
        assert_eq!(escaped("a*b?[c]\\^-"), r"a\*b\?\[c\]\\\^\-");
        assert_eq!(escaped("Ключ{x}"), "Ключ{x}");
    }

    #[test]
    fn a_lease_without_end_has_no_remaining_time() {
        assert_eq!(remaining(-1), None);
        assert_eq!(remaining(1500), Some(Duration::from_millis(1500)));
    }
}
