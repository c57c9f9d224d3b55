use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::{ClientId, Waiter};
use serde_json::{Value, json};

use crate::output::locks::holder_text;
use crate::output::table::{self, Column, UNKNOWN};
use crate::output::time_text;

/// The waiters as a table, the next one first.
pub(crate) fn table(waiters: &[Waiter], now: WallTime, width: Option<usize>) -> String {
    let rows = (1_u64..).zip(waiters);
    let rows: Vec<_> = rows
        .map(|(position, waiter)| row(position, waiter, now))
        .collect();
    table::fitted(&COLUMNS, &rows, width)
}

/// The columns, in their order.
pub(crate) const COLUMNS: [Column; 8] = [
    Column::whole("PLACE", 0),
    Column::whole("MODE", 5),
    Column::whole("WAITING", 4),
    Column::cut("HOST", 1, 8),
    Column::whole("PID", 2),
    Column::cut("COMMAND", 3, 12),
    Column::cut("USER", 6, 6),
    Column::cut("LABEL", 7, 6),
];

/// The row of a waiter.
pub(crate) fn row(position: u64, waiter: &Waiter, now: WallTime) -> Vec<String> {
    let seconds = Duration::from_secs(waiting(waiter, now).as_secs());
    let client = waiter.client.as_ref();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.into());
    vec![
        position.to_string(),
        holder_text::mode_phrase(waiter.mode),
        humantime::format_duration(seconds).to_string(),
        or_dash(client.map(|client| client.host.clone())),
        or_dash(client.map(|client| client.pid.to_string())),
        client.map_or_else(|| waiter.to_string(), |it| holder_text::command(it).into()),
        or_dash(client.and_then(|client| client.user.as_ref().map(ToString::to_string))),
        or_dash(client.and_then(|client| client.label.as_ref().map(ToString::to_string))),
    ]
}

/// The waiters of `lock`, one line each, the next one first, at most `shown_max`.
pub(crate) fn lines(lock: &str, waiters: &[Waiter], shown_max: usize, now: WallTime) -> String {
    let mut lines = String::new();
    for (position, waiter) in (1..).zip(waiters.iter().take(shown_max)) {
        let (nth, who) = (nth(position), phrase(waiter, now));
        lines += &format!("{lock}: {nth} in the queue: {who}\n");
    }
    if waiters.len() > shown_max {
        lines += &format!("{lock}: and {} more\n", waiters.len() - shown_max);
    }
    lines
}

fn phrase(waiter: &Waiter, now: WallTime) -> String {
    let mut text = waiter.to_string();
    text += &holder_text::manner(waiter.mode);
    // By the clocks of the servers, which may differ from that of this machine.
    let seconds = waiting(waiter, now).as_secs();
    if seconds > 0 {
        let span = humantime::format_duration(Duration::from_secs(seconds));
        text += &format!(", waiting for about {span}");
    }
    text
}

/// All waiters for programs, the next one first; unknown values are null.
pub(crate) fn json(waiters: &[Waiter], now: WallTime) -> Value {
    let waiters = (1_u64..).zip(waiters).map(|(position, waiter)| {
        let client = waiter.client.as_ref();
        json!({
            "position": position,
            "mode": holder_text::mode_name(waiter.mode),
            "permits": holder_text::permits(waiter.mode),
            "client": {
                "id": waiter.ticket.waiter.client().to_string(),
                "host": client.map(|client| &client.host),
                "pid": client.map(|client| client.pid),
                "program": client.map(|client| &client.program),
                "user": client.and_then(|client| client.user.as_ref()),
                "label": client.and_then(|client| client.label.as_ref()),
                "command": client.and_then(|client| client.command.as_ref()),
                "since": client.map(|client| time_text::timestamp(client.since)),
            },
            "since": time_text::timestamp(waiter.ticket.since),
            "waiting_ms": time_text::millis(waiting(waiter, now)),
        })
    });
    waiters.collect()
}

/// The position of the client `id`, from 1, if it waits.
pub(crate) fn position_of(id: ClientId, waiters: &[Waiter]) -> Option<u64> {
    let mut positions = (1..).zip(waiters);
    positions
        .find(|(_, waiter)| waiter.ticket.waiter.client() == id)
        .map(|(position, _)| position)
}

/// `1st`, `2nd`, `3rd`, `4th`.
pub(crate) fn nth(position: u64) -> String {
    let ending = match (position % 10, position % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{position}{ending}")
}

fn waiting(waiter: &Waiter, now: WallTime) -> Duration {
    let since = waiter.ticket.since.as_micros();
    Duration::from_micros(now.as_micros().saturating_sub(since))
}

/// At most this many waiters are part of the output of another subcommand.
pub(crate) const SHOWN_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Mode;
    use leasehold::env::SystemEntropy;
    use leasehold::look::{ClientInfo, Owner};
    use leasehold::store::Ticket;

    fn waiter(since: u64) -> Waiter {
        let id = ClientId::random(&SystemEntropy);
        let ticket = Ticket {
            since: WallTime::from_micros(since),
            waiter: Owner::random(id, &SystemEntropy),
        };
        Waiter::unknown(ticket, Mode::Exclusive)
    }

    fn known() -> Waiter {
        let mut waiter = waiter(1_000_000);
        let (id, since) = (waiter.ticket.waiter.client(), WallTime::from_micros(0));
        waiter.client = Some(ClientInfo::new(id, "host1".into(), 7, "cron".into(), since));
        waiter.mode = Mode::Shared;
        waiter
    }

    #[test]
    fn waiters_are_aligned_in_a_table() {
        let now = WallTime::from_micros(62_000_000);
        let mut first = waiter(1_000_000);
        first.mode = Mode::Shared;
        let id = first.ticket.waiter.client();
        let since = WallTime::from_micros(1);
        first.client = Some(ClientInfo::new(id, "h".into(), 7, "cron".into(), since));
        assert_eq!(
            table(&[first], now, None),
            "PLACE  MODE    WAITING  HOST  PID  COMMAND\n1      shared  1m 1s    h     7    cron\n"
        );
    }

    #[test]
    fn those_who_wait_are_named_in_order() {
        let (first, second) = (known(), waiter(2_000_000));
        let id = second.ticket.waiter.client();
        let now = WallTime::from_micros(62_900_000);
        assert_eq!(
            lines("deploy", &[first.clone(), second.clone()], SHOWN_MAX, now),
            format!(
                "deploy: 1st in the queue: cron (pid 7 on host1), shared, waiting for about 1m 1s\n\
                 deploy: 2nd in the queue: client {id}, waiting for about 1m\n"
            )
        );
        let value = json(&[first, second], now);
        assert_eq!(
            (&value[0]["position"], &value[1]["position"]),
            (&1.into(), &2.into())
        );
        assert_eq!(value[0]["client"]["pid"], 7);
        assert_eq!(value[0]["client"]["since"], "1970-01-01T00:00:00Z");
        assert_eq!(value[0]["since"], "1970-01-01T00:00:01Z");
        assert_eq!(
            (&value[0]["mode"], &value[0]["waiting_ms"]),
            (&"shared".into(), &61_900.into())
        );
        assert_eq!(value[1]["client"]["id"], id.to_string());
        assert!(value[1]["client"]["host"].is_null());
    }

    #[test]
    fn wait_from_the_future_counts_as_zero() {
        let late = [waiter(5_000_000)];
        let now = WallTime::from_micros(4_000_000);
        assert!(lines("x", &late, SHOWN_MAX, now).ends_with(&format!("{}\n", late[0])));
        assert_eq!(json(&late, now)[0]["waiting_ms"], 0);
    }

    #[test]
    fn long_queue_is_cut_in_text_only() {
        let now = WallTime::from_micros(0);
        let many: Vec<Waiter> = (0..42).map(waiter).collect();
        let text = lines("x", &many, SHOWN_MAX, now);
        assert_eq!(text.lines().count(), 11);
        assert!(text.contains("\nx: 10th in the queue: "), "{text}");
        assert!(text.ends_with("\nx: and 32 more\n"), "{text}");
        assert_eq!(lines("x", &many[..10], SHOWN_MAX, now).lines().count(), 10);
        assert_eq!(lines("x", &many, usize::MAX, now).lines().count(), 42);
        assert_eq!(json(&many, now).as_array().unwrap().len(), 42);
        assert_eq!(
            position_of(many[41].ticket.waiter.client(), &many),
            Some(42)
        );
        assert_eq!(position_of(ClientId::random(&SystemEntropy), &many), None);
    }

    #[test]
    fn positions_are_ordinals() {
        let positions = [1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 101, 111, 112, 123];
        assert_eq!(
            positions.map(nth).join(" "),
            "1st 2nd 3rd 4th 10th 11th 12th 13th 21st 22nd 101st 111th 112th 123rd"
        );
    }
}
