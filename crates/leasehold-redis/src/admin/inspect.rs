//! Reads the holders and the waiters of a lock. The answers are for people: nothing here is atomic.

use std::collections::HashMap;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::{ClientId, ClientInfo, Holder, Owner, Waiter};
use leasehold::store::{Ticket, printable};
use leasehold::{Error, Fence, Key, Mode};

use super::foreign::Form;
use super::server::Server;
use crate::codec::{LockValue, Names, client_record, read_entry, read_time};
use crate::resp::{CommandWriter, Value};

/// The greatest number of readers, and of waiters, that are shown for one lock.
const SHOWN_MAX: u64 = 1000;

impl Server {
    /// Returns the holders of a lock.
    pub(crate) async fn holders(&self, key: &Key) -> Result<Vec<Holder>, Error> {
        let names = self.names(key);
        let answers = self
            .inspect(true, |out| {
                out.command("GET").arg(names.lock());
                out.command("PTTL").arg(names.lock());
            })
            .await?;
        let [value, left] = answers.as_slice() else {
            return Err(self.invalid_response("GET"));
        };
        let left = left.as_integer().and_then(remaining);
        let mut holders = match value {
            Value::Null => return Ok(Vec::new()),
            Value::Error { .. } => vec![foreign(self.form_of_type(&names).await?, left)],
            value => {
                let value = value
                    .as_bytes()
                    .ok_or_else(|| self.invalid_response("GET"))?;
                self.holders_by(&names, value, left).await?
            }
        };
        self.name(holders.iter_mut()).await?;
        Ok(holders)
    }

    async fn holders_by(
        &self,
        names: &Names<'_>,
        value: &[u8],
        left: Option<Duration>,
    ) -> Result<Vec<Holder>, Error> {
        let found = LockValue::read(value);
        Ok(match found {
            LockValue::Foreign => vec![foreign(Form::of(value), left)],
            LockValue::OtherType(kind) => vec![foreign(Form::of_type(&kind), left)],
            LockValue::Owner(owner) | LockValue::Broken(owner) => {
                let note = self
                    .inspect(true, |out| ask_note(names, owner, out))
                    .await?;
                let is_broken = matches!(found, LockValue::Broken(_));
                vec![exclusive(owner, is_broken, left, note.first())]
            }
            LockValue::Shared => self.together(names, Mode::Shared).await?,
            LockValue::Permits(permits) => self.together(names, Mode::Permit(permits)).await?,
            LockValue::Next => Vec::new(),
        })
    }

    async fn form_of_type(&self, names: &Names<'_>) -> Result<Form, Error> {
        let answers = self
            .inspect(false, |out| {
                out.command("TYPE").arg(names.lock());
            })
            .await?;
        let kind = answers.first().and_then(Value::as_text);
        Ok(Form::of_type(kind.unwrap_or_default()))
    }

    async fn together(&self, names: &Names<'_>, mode: Mode) -> Result<Vec<Holder>, Error> {
        let answers = self
            .inspect(false, |out| {
                out.command("TIME");
                ask_together(names, SHOWN_MAX, out);
            })
            .await?;
        let [time, together @ ..] = answers.as_slice() else {
            return Err(self.invalid_response("TIME"));
        };
        let now = read_time(time).ok_or_else(|| self.invalid_response("TIME"))?;
        read_together(together, mode, now).ok_or_else(|| self.invalid_response("ZRANGE"))
    }

    /// Returns the waiters for a lock in the order of their tickets.
    pub(crate) async fn waiters(&self, key: &Key) -> Result<Vec<Waiter>, Error> {
        let names = self.names(key);
        let ask = |out: &mut CommandWriter<'_>| {
            out.command("ZRANGE").arg(names.record("queue"));
            out.number(0).number(SHOWN_MAX - 1).arg("WITHSCORES");
        };
        let answers = self.inspect(false, ask).await?;
        let queue = answers.first().and_then(scored);
        let queue = queue.ok_or_else(|| self.invalid_response("ZRANGE"))?;
        let waiter = |(entry, ticket): (&str, f64)| {
            let (waiter, mode) = read_entry(entry)?;
            let since = WallTime::from_micros(ticket as u64);
            Some(Waiter::unknown(Ticket { since, waiter }, mode))
        };
        let mut waiters: Vec<Waiter> = queue.into_iter().filter_map(waiter).collect();
        let owners = waiters.iter().map(|waiter| waiter.ticket.waiter);
        let named = self.clients(owners).await?;
        for waiter in &mut waiters {
            waiter.client = named.get(&waiter.ticket.waiter.client()).cloned();
        }
        Ok(waiters)
    }

    /// Adds to each holder which process it is, if its client told the server.
    pub(super) async fn name(
        &self,
        holders: impl Iterator<Item = &mut Holder>,
    ) -> Result<(), Error> {
        let holders: Vec<&mut Holder> = holders.collect();
        let owners = holders.iter().filter_map(|holder| holder.owner);
        let named = self.clients(owners).await?;
        for holder in holders {
            let client = holder.owner.and_then(|owner| named.get(&owner.client()));
            holder.client = client.cloned();
        }
        Ok(())
    }

    async fn clients(
        &self,
        owners: impl Iterator<Item = Owner>,
    ) -> Result<HashMap<ClientId, ClientInfo>, Error> {
        let mut clients: Vec<ClientId> = owners.map(Owner::client).collect();
        clients.sort_unstable();
        clients.dedup();
        // A record that cannot be read hides no holder, so errors do not matter.
        let answers = self
            .ask(|out| {
                for client in &clients {
                    out.command("HGETALL").arg(client_record(*client));
                }
            })
            .await?;
        let named = clients.into_iter().zip(&answers);
        let named = named.filter_map(|(id, answer)| Some((id, read_client(id, answer)?)));
        Ok(named.collect())
    }
}

/// Asks for the fence of an exclusive lease. The counter does not show it, since refused attempts raise it.
pub(super) fn ask_note(names: &Names<'_>, owner: Owner, out: &mut CommandWriter<'_>) {
    let fence = names.record("fence:0");
    out.command("ZSCORE").arg(fence).arg(owner.to_string());
}

/// Asks for the leases of a shared lock that end last, and for the owners of permits. Any number of ended
/// leases may precede them.
pub(super) fn ask_together(names: &Names<'_>, shown_max: u64, out: &mut CommandWriter<'_>) {
    out.command("ZRANGE").arg(names.record("readers"));
    out.number(0).number(shown_max - 1).arg("REV");
    out.arg("WITHSCORES");
    out.command("HGETALL").arg(names.record("slots"));
}

/// How many replies [`ask_together`] has.
pub(super) const TOGETHER: usize = 2;

/// Reads the leases that are valid at `now`, an instant of the server's clock.
pub(super) fn read_together(answers: &[Value], mode: Mode, now: WallTime) -> Option<Vec<Holder>> {
    let [readers, slots] = answers else {
        return None;
    };
    let slots: HashMap<&str, &str> = texts(slots)?.into_iter().collect();
    let leases = scored(readers)?.into_iter().rev();
    let holders = leases.filter_map(|(entry, ends_ms)| {
        let owner = match mode {
            // `slots` names the owner of each slot, too.
            Mode::Permit(_) => slots.get(entry)?,
            _ => entry,
        };
        let ends = Duration::from_millis(ends_ms as u64);
        let left = ends.checked_sub(Duration::from_micros(now.as_micros()))?;
        if left.is_zero() {
            return None;
        }
        let (owner, is_broken) = match LockValue::read(owner.as_bytes()) {
            LockValue::Owner(owner) => (owner, false),
            LockValue::Broken(owner) => (owner, true),
            _ => return None,
        };
        let mut holder = Holder::of(owner, mode);
        holder.remaining = Some(left);
        holder.broken = is_broken;
        Some(holder)
    });
    Some(holders.collect())
}

/// Returns a holder that uses another library.
pub(super) fn foreign(form: Form, remaining: Option<Duration>) -> Holder {
    let mut holder = Holder::unknown(Mode::Exclusive);
    holder.remaining = remaining;
    holder.form = Some(form.words());
    holder
}

/// Returns the exclusive holder, or the last one if its lease was broken.
pub(super) fn exclusive(
    owner: Owner,
    is_broken: bool,
    remaining: Option<Duration>,
    note: Option<&Value>,
) -> Holder {
    let mut holder = Holder::of(owner, Mode::Exclusive);
    holder.remaining = remaining;
    holder.broken = is_broken;
    holder.fence = match note {
        Some(Value::Null) => unnoted_fence(owner),
        // The fence of a broken lease is negated.
        Some(note) => note
            .as_number()
            .and_then(|fence| Fence::new(fence.abs() as u64)),
        None => None,
    };
    holder
}

/// Returns the fence of a lease without a note: the first fence above the owner's instant.
fn unnoted_fence(owner: Owner) -> Option<Fence> {
    let instant = owner.since().as_micros();
    let fence = Fence::new(instant + 1)?;
    (instant > 0 && fence <= Fence::MAX).then_some(fence)
}

/// Reads a reply to PTTL, which is a negative number if the key has no end or is gone.
pub(super) fn remaining(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Reads the record of a client.
pub(super) fn read_client(id: ClientId, answer: &Value) -> Option<ClientInfo> {
    let fields: HashMap<&str, &str> = texts(answer)?.into_iter().collect();
    let client = ClientInfo::new(
        id,
        printable(fields.get("host")?),
        fields.get("pid")?.parse().ok()?,
        printable(fields.get("program")?),
        WallTime::from_micros(fields.get("since")?.parse().ok()?),
    );
    let text = |name: &str| fields.get(name).copied();
    Some(
        client
            .with_user(text("user"))
            .with_label(text("label"))
            .with_command(text("command")),
    )
}

/// Reads the fields of a hash that are texts.
pub(super) fn texts(answer: &Value) -> Option<Vec<(&str, &str)>> {
    let pairs = answer.as_pairs()?.into_iter();
    let texts = pairs.filter_map(|(field, value)| Some((field.as_text()?, value.as_text()?)));
    Some(texts.collect())
}

/// Reads entries with scores. RESP3 sends them as pairs.
fn scored(answer: &Value) -> Option<Vec<(&str, f64)>> {
    let items = answer.as_array()?;
    Some(if items.iter().any(|item| item.as_array().is_some()) {
        let pairs = items.iter().filter_map(Value::as_array);
        pairs.filter_map(read_pair).collect()
    } else {
        items.chunks_exact(2).filter_map(read_pair).collect()
    })
}

fn read_pair(pair: &[Value]) -> Option<(&str, f64)> {
    match pair {
        [entry, score] => Some((entry.as_text()?, score.as_number()?)),
        _ => None,
    }
}
