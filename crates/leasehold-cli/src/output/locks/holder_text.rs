use leasehold::Mode;
use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::look::{ClientInfo, Holder};
use serde_json::{Value, json};

use crate::output::time_text::{expiry, millis, timestamp, timestamp_and_age, whole_seconds};

/// A holder in one phrase, for people.
pub(crate) fn phrase(holder: &Holder) -> String {
    phrase_at(holder, SystemClock.wall())
}

/// The same, at the time `now`.
fn phrase_at(holder: &Holder, now: WallTime) -> String {
    let mut text = holder.to_string();
    if let Some(form) = holder.form {
        text += &format!(" (the key holds {form})");
    }
    if let Some(since) = holder.since {
        text += &format!(" since {}", timestamp_and_age(since, now));
    }
    text += &manner(holder.mode);
    if let Some(fence) = holder.fence {
        text += &format!(", fence {fence}");
    }
    text + &ending(holder)
}

/// When the lock is free, if that is known.
fn ending(holder: &Holder) -> String {
    match holder.remaining {
        Some(left) if holder.broken => format!(", broken: closed for {}", whole_seconds(left)),
        Some(left) => format!(", expires in {} unless renewed", expiry(left)),
        None if holder.form.is_some() => {
            ", which never expires; the lock is free once the key is deleted".into()
        }
        None => String::new(),
    }
}

/// What a client runs under its locks, or otherwise its program.
pub(crate) fn command(client: &ClientInfo) -> &str {
    client.command.as_deref().unwrap_or(&client.program)
}

/// How a lock is held or wanted, unless exclusively.
pub(crate) fn manner(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => String::new(),
        Mode::Shared => ", shared".into(),
        Mode::Permit(permits) => format!(", one of {permits} permits"),
    }
}

/// How a lock is held or wanted, as a column of a table.
pub(crate) fn mode_phrase(mode: Mode) -> String {
    match mode {
        Mode::Permit(permits) => format!("1 of {permits} permits"),
        Mode::Exclusive | Mode::Shared => mode_name(mode).into(),
    }
}

/// The name of a mode, without its number.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permit(_) => "permit",
    }
}

/// The number of permits of the lock, for a permit.
pub(crate) fn permits(mode: Mode) -> Option<u32> {
    match mode {
        Mode::Permit(permits) => Some(permits.get()),
        Mode::Exclusive | Mode::Shared => None,
    }
}

/// The first holders in one phrase, for people.
pub(crate) fn phrases(holders: &[Holder]) -> String {
    listed(holders, phrase)
}

/// The processes of the first holders, and what else is known of a single one, for a line that may be cut.
pub(crate) fn processes(holders: &[Holder]) -> (String, String) {
    let process = |holder: &Holder| match &holder.client {
        Some(client) => format!("pid {} on {}", client.pid, client.host),
        None => holder.to_string(),
    };
    let mut details = String::new();
    if let [holder] = holders {
        if let Some(client) = &holder.client {
            details += &format!(", running {}", command(client));
            if let Some(user) = &client.user {
                details += &format!(", user {user}");
            }
        }
        details += &manner(holder.mode);
        details += &ending(holder);
    }
    (listed(holders, process), details)
}

fn listed(holders: &[Holder], text: impl Fn(&Holder) -> String) -> String {
    let named = holders.iter().take(NAMED_MAX);
    let mut phrases: Vec<String> = named.map(text).collect();
    if holders.len() > NAMED_MAX {
        phrases.push(format!("{} more", holders.len() - NAMED_MAX));
    }
    phrases.join(" and ")
}

/// At most this many holders are named in one phrase.
const NAMED_MAX: usize = 3;

/// A holder for programs; unknown values are null.
pub(crate) fn json(holder: &Holder) -> Value {
    let client = holder.client.as_ref();
    json!({
        "mode": mode_name(holder.mode),
        "permits": permits(holder.mode),
        "owner": holder.owner.map(|owner| owner.to_string()),
        "host": client.map(|client| &client.host),
        "pid": client.map(|client| client.pid),
        "program": client.map(|client| &client.program),
        "user": client.and_then(|client| client.user.as_ref()),
        "label": client.and_then(|client| client.label.as_ref()),
        "command": client.and_then(|client| client.command.as_ref()),
        "since": holder.since.map(timestamp),
        "fence": holder.fence.map(leasehold::Fence::get),
        "remaining_ms": holder.remaining.map(millis),
        "broken": holder.broken,
        "foreign": holder.owner.is_none(),
        "form": holder.form,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use leasehold::Fence;
    use leasehold::env::SystemEntropy;
    use leasehold::look::{ClientId, Owner};
    use leasehold::store::Permits;

    fn phrase_at_grant(holder: &Holder) -> String {
        phrase_at(holder, holder.since.unwrap_or(WallTime::from_micros(0)))
    }

    fn known() -> Holder {
        let id = ClientId::random(&SystemEntropy);
        let started = WallTime::from_micros(1_600_000_000_000_000);
        let client = ClientInfo::new(id, "host1".into(), 7, "cron".into(), started);
        let granted = WallTime::from_micros(1_700_000_000_000_000);
        let mut holder = Holder::of(Owner::at(id, granted, &SystemEntropy), Mode::Shared);
        holder.client = Some(client);
        holder.fence = Fence::new(12);
        holder.remaining = Some(Duration::from_micros(21_500_900));
        holder
    }

    #[test]
    fn all_that_is_known_is_said() {
        assert_eq!(
            phrase_at_grant(&known()),
            "cron (pid 7 on host1) since 2023-11-14T22:13:20Z, shared, fence 12, \
             expires in 21s unless renewed"
        );
        let mut broken = known();
        broken.broken = true;
        assert!(phrase_at_grant(&broken).ends_with(", fence 12, broken: closed for 22s"));
        assert_eq!(json(&broken)["broken"], true);
        let mut foreign = Holder::unknown(Mode::Exclusive);
        foreign.form = Some("a number");
        assert_eq!(
            phrase_at_grant(&foreign),
            "a client of another library (the key holds a number), which never expires; the lock is free \
             once the key is deleted"
        );
        foreign.remaining = Some(Duration::from_secs(2));
        assert!(
            phrase_at_grant(&foreign)
                .ends_with(" (the key holds a number), expires in 2s unless renewed")
        );
        assert_eq!(json(&foreign)["form"], "a number");
        let unknown = Holder::unknown(Mode::Exclusive);
        assert_eq!(phrase_at_grant(&unknown), "a client of another library");
        assert_eq!(json(&unknown)["foreign"], true);
        assert_eq!(
            phrases(&[unknown.clone(), unknown]),
            "a client of another library and a client of another library"
        );
        let many = vec![Holder::unknown(Mode::Shared); 128];
        assert_eq!(phrases(&many[..3]).matches("another library").count(), 3);
        let text = phrases(&many);
        assert_eq!(text.matches("another library").count(), 3);
        assert!(text.ends_with(" and 125 more"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_null() {
        let value = json(&known());
        assert_eq!(value["pid"], 7);
        assert_eq!(value["remaining_ms"], 21_500);
        let value = json(&Holder::unknown(Mode::Exclusive));
        assert_eq!(value["mode"], "exclusive");
        assert!(value["permits"].is_null());
        assert!(value["host"].is_null() && value["fence"].is_null());
    }

    #[test]
    fn permit_is_shown_with_the_total() {
        let permit = Holder::unknown(Mode::Permit(Permits::new(3).unwrap()));
        assert!(phrase_at_grant(&permit).ends_with(", one of 3 permits"));
        let value = json(&permit);
        assert_eq!(
            (&value["mode"], &value["permits"]),
            (&"permit".into(), &3.into())
        );
    }
}
