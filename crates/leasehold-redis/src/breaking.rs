//! Breaking a lease, and the record of it.

use std::collections::HashMap;

use leasehold::clock::WallTime;
use leasehold::{Break, BreakRecord, Broken, ClientInfo, Error, Key};

use crate::attempt::{duration, garbled};
use crate::connection::{Answer, Command, Link, Refusal};
use crate::lease::refused;
use crate::look::{ask, plain};
use crate::queue::complain;
use crate::scripts::BREAK;
use crate::wire::Records;

/// Breaks the lease of `record.owner`, and keeps the record where it stood.
pub(crate) async fn break_lease(
    link: &Link,
    records: &Records<'_>,
    record: &BreakRecord,
) -> Result<Broken, Error> {
    let keys = [
        records.lock().to_owned(),
        records.fence().concat(),
        records.readers().concat(),
        records.queue().concat(),
        records.offered().concat(),
        records.broken().concat(),
    ];
    let departure = if record.at_once { "hand over" } else { "" };
    let mut arguments = vec![
        record.owner.to_string(),
        record.fence.to_string(),
        departure.to_owned(),
        BreakRecord::KEPT.as_millis().to_string(),
    ];
    arguments.extend(fields(record));
    let answers = link
        .run(&BREAK, vec![BREAK.call(&keys, &arguments)])
        .await?;
    match answers.first() {
        Some(Answer::Integer(held)) => Ok(Broken::new(*held == 1, None)),
        Some(Answer::List(told)) => match told.as_slice() {
            [Answer::Integer(_), left @ Answer::Integer(_)] => {
                Ok(Broken::new(true, duration(left)))
            }
            // The lock is free, but somebody was not told.
            [Answer::Integer(held), failure @ Answer::Text(_)] => {
                complain(link, failure);
                Ok(Broken::new(*held == 1, None))
            }
            _ => Err(garbled("the breaking of a lock")),
        },
        Some(Answer::Refused(refusal)) => Err(refused(refusal, link)),
        _ => Err(garbled("the breaking of a lock")),
    }
}

/// The record as fields and values by turns.
fn fields(record: &BreakRecord) -> Vec<String> {
    let at_once = u8::from(record.at_once).to_string();
    let mut fields = vec![
        ("owner", record.owner.to_string()),
        ("fence", record.fence.to_string()),
        ("at_once", at_once),
        ("at", record.at.as_micros().to_string()),
        ("client", record.by.id.to_string()),
        ("host", record.by.host.clone()),
        ("pid", record.by.pid.to_string()),
        ("program", record.by.program.clone()),
        ("since", record.by.since.as_micros().to_string()),
    ];
    fields.extend(record.user.clone().map(|user| ("user", user)));
    fields.extend(record.reason.clone().map(|reason| ("reason", reason)));
    let pairs = fields.into_iter();
    pairs
        .flat_map(|(field, value)| [field.to_owned(), value])
        .collect()
}

/// How the lock was broken last, if that is kept. A record that was damaged counts as none.
pub(crate) async fn last_break(
    link: &Link,
    records: &Records<'_>,
    key: &Key,
) -> Result<Option<BreakRecord>, Error> {
    let question = Command::new("HGETALL").joined(&records.broken());
    let answers = ask(link, vec![question], Refusal::is_wrong_type).await?;
    let found = match answers.first() {
        Some(Answer::List(found)) => Some(found),
        Some(Answer::Refused(_)) => None,
        _ => return Err(garbled("HGETALL")),
    };
    let record = found.and_then(|found| read(&by_name(found)));
    let is_there = found.is_none_or(|found| !found.is_empty());
    if record.is_none() && is_there {
        tracing::warn!(%key, "the record of how the lock was broken makes no sense");
    }
    Ok(record)
}

pub(crate) fn by_name(found: &[Answer]) -> HashMap<&str, &str> {
    let pairs = found.chunks_exact(2);
    pairs
        .filter_map(|pair| Some((pair[0].as_text()?, pair[1].as_text()?)))
        .collect()
}

pub(crate) fn read(fields: &HashMap<&str, &str>) -> Option<BreakRecord> {
    let number = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let text = |name: &str| fields.get(name).map(|text| (*text).to_owned());
    let by = ClientInfo::new(
        fields.get("client")?.parse().ok()?,
        plain(fields.get("host")?),
        u32::try_from(number("pid")?).ok()?,
        plain(fields.get("program")?),
        WallTime::from_micros(number("since")?),
    );
    let owner = fields.get("owner")?.parse().ok()?;
    let fence = leasehold::Fence::new(number("fence")?)?;
    let mut record = BreakRecord::new(owner, fence, by, WallTime::from_micros(number("at")?));
    record.at_once = number("at_once")? == 1;
    // Whoever may write to the server can have put anything here, and it is shown on terminals.
    record.user = text("user").filter(|user| Break::at_once().by_user(user).is_ok());
    record.reason = text("reason").filter(|reason| Break::at_once().because(reason).is_ok());
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::ambient::SystemEntropy;
    use leasehold::{ClientId, Fence, Owner};

    #[test]
    fn a_record_is_read_as_it_was_written_or_not_at_all() {
        let id = ClientId::random(&SystemEntropy);
        let owner = Owner::random(id, &SystemEntropy);
        let by = ClientInfo::new(
            id,
            "host1".into(),
            7,
            "ops".into(),
            WallTime::from_micros(5),
        );
        let fence = Fence::new(12).unwrap();
        let mut record = BreakRecord::new(owner, fence, by, WallTime::from_micros(9));
        record.at_once = true;
        record.reason = Some("its host is gone".into());
        let written = fields(&record);
        let pairs = written.chunks(2).map(|pair| (&*pair[0], &*pair[1]));
        let mut found: HashMap<&str, &str> = pairs.collect();
        assert_eq!(read(&found), Some(record.clone()));
        found.insert("user", "ann\u{1b}[2J");
        found.insert("reason", "none\nx: free");
        found.insert("program", "ops\u{1b}[2J\n");
        let read_again = read(&found).unwrap();
        assert_eq!((read_again.user, read_again.reason), (None, None));
        assert_eq!(read_again.by.program, "ops\u{fffd}[2J\u{fffd}");
        found.insert("fence", "0");
        assert_eq!(read(&found), None);
        assert_eq!(read(&HashMap::new()), None);
    }
}
