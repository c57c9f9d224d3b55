//! Held locks as a table: one row for each holder.

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::{Holder, ListedLock, LockListing};
use leasehold::store::Visibility;

use crate::output::locks::holder_text;
use crate::output::table::{Column, UNKNOWN};
use crate::output::time_text;

/// The columns, in their order. What an operator acts on stays on a narrow terminal: how long it is held, host, process and
/// command.
pub(crate) const COLUMNS: [Column; 11] = [
    Column::cut("LOCK", 0, 12),
    Column::cut("HOST", 3, 8),
    Column::whole("PID", 4),
    Column::cut("COMMAND", 5, 12),
    Column::whole("HELD FOR", 2),
    Column::whole("EXPIRES IN", 6),
    Column::cut("USER", 8, 6),
    Column::cut("LABEL", 9, 6),
    Column::whole("FENCE", 7),
    Column::whole("SINCE", 10),
    Column::cut("NOTE", 1, 12),
];

/// The rows of a lock, one for each of its first holders. If the servers disagree, they say how many servers name the holder.
pub(crate) fn rows(lock: &ListedLock, listing: &LockListing, now: WallTime) -> Vec<Vec<String>> {
    let agreed = is_agreed(lock, listing);
    let held: Vec<&Visibility> = holding(lock, listing).collect();
    let shown = if held.is_empty() {
        &lock.holders.iter().collect()
    } else {
        &held
    };
    let row = |sight: &&Visibility| {
        let mut note = notes(&sight.holder);
        if !agreed {
            note.push(format!(
                "on {} of {} servers",
                sight.members, listing.members
            ));
        }
        if held.is_empty() {
            note.push("no majority".into());
        }
        row_of(lock.key.as_str(), &sight.holder, &note.join(", "), now)
    };
    let mut rows: Vec<_> = shown.iter().take(NAMED_MAX).map(row).collect();
    let mut note = |text: String| {
        let mut row = vec![UNKNOWN.to_owned(); COLUMNS.len()];
        row[0] = lock.key.to_string();
        row[COLUMNS.len() - 1] = text;
        rows.push(row);
    };
    if shown.len() > NAMED_MAX {
        note(format!("{} more holders", shown.len() - NAMED_MAX));
    }
    if let (false, others @ 1..) = (held.is_empty(), lock.holders.len() - held.len()) {
        note(format!("{others} more on a minority of servers"));
    }
    rows
}

/// At most this many holders of one lock are named.
const NAMED_MAX: usize = 3;

fn row_of(lock: &str, holder: &Holder, note: &str, now: WallTime) -> Vec<String> {
    let client = holder.client.as_ref();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
    vec![
        lock.to_owned(),
        or_dash(client.map(|client| client.host.clone())),
        or_dash(client.map(|client| client.pid.to_string())),
        client.map_or_else(|| holder.to_string(), |it| holder_text::command(it).into()),
        or_dash(holder.since.map(|since| age(since, now))),
        or_dash(holder.remaining.map(|it| time_text::expiry(it).to_string())),
        or_dash(client.and_then(|client| client.user.as_ref().map(ToString::to_string))),
        or_dash(client.and_then(|client| client.label.as_ref().map(ToString::to_string))),
        or_dash(holder.fence.map(|fence| fence.to_string())),
        or_dash(holder.since.map(time_text::timestamp)),
        note.to_owned(),
    ]
}

/// What is special about a holder.
fn notes(holder: &Holder) -> Vec<String> {
    let mut notes = Vec::new();
    let manner = holder_text::manner(holder.mode);
    if !manner.is_empty() {
        notes.push(manner.trim_start_matches(", ").to_owned());
    }
    if let Some(form) = holder.form {
        notes.push(format!("the key holds {form}, or is not a lock"));
    }
    if holder.broken {
        notes.push("broken".into());
    }
    notes
}

/// How long ago `since` was, in its greatest unit.
pub(crate) fn age(since: WallTime, now: WallTime) -> String {
    let micros = now.as_micros().saturating_sub(since.as_micros());
    time_text::coarse(Duration::from_micros(micros))
}

/// The holders that a majority of the servers names.
pub(crate) fn holding<'a>(
    lock: &'a ListedLock,
    listing: &LockListing,
) -> impl Iterator<Item = &'a Visibility> {
    let members = listing.members;
    lock.holders
        .iter()
        .filter(move |sight| sight.members > members / 2)
}

/// Whether all servers that answered name the same holders.
pub(crate) fn is_agreed(lock: &ListedLock, listing: &LockListing) -> bool {
    let answered = listing.members - listing.failures.len();
    let mut holders = lock.holders.iter();
    holders.all(|sight| sight.members == answered)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::output::table::fitted;
    use leasehold::clock::WallTime;
    use leasehold::env::SystemEntropy;
    use leasehold::look::{ClientId, ClientInfo, Owner};
    use leasehold::{Fence, Key, Mode};

    /// A lock on five servers, with the number of servers that name each holder.
    pub(crate) fn list_locks(members: &[usize]) -> LockListing {
        let holders = vec![Holder::unknown(Mode::Exclusive); members.len()];
        let mut lock = ListedLock::new(Key::new("deploy").unwrap(), holders);
        for (sight, members) in lock.holders.iter_mut().zip(members) {
            sight.members = *members;
        }
        let mut listing = LockListing::new(vec![lock], false);
        listing.members = 5;
        listing
    }

    /// A holder that took its lock at this second and runs `command`.
    pub(crate) fn holder(since: u64, host: &str, command: &str) -> Holder {
        let id = ClientId::random(&SystemEntropy);
        let since = WallTime::from_micros(since * 1_000_000);
        let owner = Owner::at(id, since, &SystemEntropy);
        let mut client = ClientInfo::new(id, host.into(), 4711, "leasehold".into(), since);
        client.user = Some("ann".into());
        client.command = Some(command.into());
        let mut holder = Holder::of(owner, Mode::Exclusive);
        holder.client = Some(client);
        holder.since = Some(since);
        holder.fence = Fence::new(1_795_452_510_401_928);
        holder.remaining = Some(Duration::from_secs(29));
        holder
    }

    fn notes_of(members: &[usize]) -> Vec<String> {
        let listing = list_locks(members);
        let rows = rows(&listing.locks[0], &listing, WallTime::from_micros(0));
        rows.into_iter()
            .map(|row| row.last().unwrap().clone())
            .collect()
    }

    #[test]
    fn disagreement_of_servers_is_in_the_notes() {
        assert_eq!(notes_of(&[5]), [""]);
        assert_eq!(notes_of(&[3]), ["on 3 of 5 servers"]);
        assert_eq!(
            notes_of(&[3, 2]),
            ["on 3 of 5 servers", "1 more on a minority of servers"]
        );
        assert_eq!(notes_of(&[2]), ["on 2 of 5 servers, no majority"]);
    }

    #[test]
    fn only_the_first_shared_holders_are_named() {
        let rows = notes_of(&[5; 128]);
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[3], "125 more holders");
        assert_eq!(notes_of(&[5; 3]).len(), 3);
    }

    #[test]
    fn host_process_and_command_fit_60_columns() {
        let holder = holder(100, "web-1", "./deploy.sh --all --verbose --region eu");
        let lock = ListedLock::new(Key::new("deploy").unwrap(), vec![holder]);
        let listing = LockListing::new(vec![lock], false);
        let now = WallTime::from_micros(345_000_000);
        let rows = rows(&listing.locks[0], &listing, now);
        let at = |width| fitted(&COLUMNS, &rows, Some(width));
        assert_eq!(
            at(60),
            "LOCK    HOST   PID   COMMAND            HELD FOR  EXPIRES IN\n\
             deploy  web-1  4711  ./deploy.sh --al…  4m        29s\n"
        );
        for width in 60..=200 {
            let text = at(width);
            assert!(text.contains("web-1  4711  ./deploy.sh"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width));
        }
        let widest = at(200);
        assert!(widest.contains("1795452510401928"), "{widest}");
        assert!(widest.contains("--region eu  4m"), "{widest}");
    }
}
