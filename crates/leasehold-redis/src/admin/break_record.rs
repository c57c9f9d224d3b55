//! Breaking a lease, and the record of it.

use std::collections::HashMap;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::{BreakOptions, BreakRecord, BrokenLease, ClientInfo};
use leasehold::store::printable;
use leasehold::{Error, Fence, Key};

use super::inspect::texts;
use super::server::Server;
use crate::codec::write_call;
use crate::resp::{CommandWriter, Value};
use crate::scripts::BREAK;

impl Server {
    /// Breaks the lease of `record.owner`, and keeps the record if the lease was valid.
    pub(crate) async fn break_lease(
        &self,
        key: &Key,
        record: &BreakRecord,
    ) -> Result<BrokenLease, Error> {
        let names = self.names(key);
        let call = |out: &mut CommandWriter<'_>| {
            write_call(&BREAK, &names, Some("broken"), out);
            out.arg(record.owner.to_string());
            out.arg(
                record
                    .fence
                    .map(|fence| fence.to_string())
                    .unwrap_or_default(),
            );
            out.arg(if record.at_once { "1" } else { "" });
            out.arg(BreakRecord::KEPT.as_millis().to_string());
            for (field, value) in fields(record) {
                out.arg(field).arg(value);
            }
        };
        let answers = self.call(&BREAK, call).await?;
        let told = self.accepted(answers.first())?;
        let Some([Value::Integer(was_valid), Value::Integer(left)]) = told.as_array() else {
            return Err(self.invalid_response("the breaking of a lock"));
        };
        let left = u64::try_from(*left).ok().map(Duration::from_millis);
        Ok(BrokenLease::new(*was_valid == 1, left))
    }

    /// Returns the last break of the lock, if the server still remembers it. A damaged record counts as none.
    pub(crate) async fn last_break(&self, key: &Key) -> Result<Option<BreakRecord>, Error> {
        let name = self.names(key).record("broken");
        let answers = self
            .inspect(true, |out| {
                out.command("HGETALL").arg(name);
            })
            .await?;
        let found = match answers.first() {
            Some(Value::Error { .. }) => None,
            Some(found) => Some(texts(found).ok_or_else(|| self.invalid_response("HGETALL"))?),
            None => return Err(self.invalid_response("HGETALL")),
        };
        let is_there = found.as_ref().is_none_or(|found| !found.is_empty());
        let record = found.and_then(|found| read(&found.into_iter().collect()));
        if record.is_none() && is_there {
            tracing::warn!(%key, "the record of how the lock was broken makes no sense");
        }
        Ok(record)
    }
}

fn fields(record: &BreakRecord) -> Vec<(&'static str, String)> {
    let at_once = u8::from(record.at_once).to_string();
    let mut fields = vec![
        ("owner", record.owner.to_string()),
        ("at_once", at_once),
        ("at", record.at.as_micros().to_string()),
        ("client", record.by.id.to_string()),
        ("host", record.by.host.clone()),
        ("pid", record.by.pid.to_string()),
        ("program", record.by.program.clone()),
        ("since", record.by.since.as_micros().to_string()),
    ];
    let fence = record.fence.map(|fence| fence.to_string());
    fields.extend(fence.map(|fence| ("fence", fence)));
    fields.extend(record.user.clone().map(|user| ("user", user)));
    fields.extend(record.reason.clone().map(|reason| ("reason", reason)));
    fields
}

pub(super) fn read(fields: &HashMap<&str, &str>) -> Option<BreakRecord> {
    let number = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let text = |name: &str| fields.get(name).map(|text| (*text).to_owned());
    let by = ClientInfo::new(
        fields.get("client")?.parse().ok()?,
        printable(fields.get("host")?),
        u32::try_from(number("pid")?).ok()?,
        printable(fields.get("program")?),
        WallTime::from_micros(number("since")?),
    );
    let owner = fields.get("owner")?.parse().ok()?;
    let fence = match fields.get("fence") {
        Some(fence) => Some(Fence::new(fence.parse().ok()?)?),
        None => None,
    };
    let mut record = BreakRecord::new(owner, fence, by, WallTime::from_micros(number("at")?));
    record.at_once = number("at_once")? == 1;
    // Any user of the server can have written this, and terminals show it.
    record.user = text("user").filter(|user| BreakOptions::at_once().by_user(user).is_ok());
    record.reason = text("reason").filter(|reason| BreakOptions::at_once().because(reason).is_ok());
    Some(record)
}

#[cfg(test)]
mod tests {
    use leasehold::env::SystemEntropy;
    use leasehold::look::{ClientId, Owner};

    use super::*;

    #[test]
    fn record_is_read_as_it_was_written() {
        let id = ClientId::random(&SystemEntropy);
        let owner = Owner::random(id, &SystemEntropy);
        let since = WallTime::from_micros(5);
        let by = ClientInfo::new(id, "host1".into(), 7, "ops".into(), since);
        let fence = Fence::new(12);
        let mut record = BreakRecord::new(owner, fence, by, WallTime::from_micros(9));
        record.at_once = true;
        record.reason = Some("its host is gone".into());
        let written = fields(&record);
        let pairs = written
            .iter()
            .map(|(field, value)| (*field, value.as_str()));
        let mut found: HashMap<&str, &str> = pairs.collect();
        assert_eq!(read(&found), Some(record.clone()));
        found.insert("user", "ann\u{1b}[2J");
        found.insert("program", "ops\u{1b}[2J\n");
        let read_again = read(&found).unwrap();
        assert_eq!(read_again.user, None);
        assert_eq!(read_again.by.program, "ops\u{fffd}[2J\u{fffd}");
        found.insert("fence", "0");
        assert_eq!(read(&found), None);
    }
}
