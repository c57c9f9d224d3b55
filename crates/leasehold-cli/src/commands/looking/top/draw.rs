//! The picture of the view.
#![deny(clippy::disallowed_types)]

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::{ListedLock, Waiter};
use leasehold::store::printable;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr as _;

use crate::commands::looking::top::keys::KEYS;
use crate::commands::looking::top::prompt::prompt;
use crate::commands::looking::top::snapshot::Snapshot;
use crate::commands::looking::top::state::{Prompt, Top};
use crate::output::locks::lock_table;
use crate::output::locks::waiter_text;
use crate::output::table::{Column, Layout, UNKNOWN, padded};
use crate::output::time_text::timestamp;

/// The lines above the locks.
const ABOVE: usize = 3;
/// The line with the keys, or what they ask for.
const BELOW: usize = 1;
/// The lines about the queue of the selected lock, if the screen has room for them.
const QUEUE: usize = 5;
const ROOM_FOR_QUEUE: usize = 14;
/// Which column has the length of the queue.
const QUEUE_COLUMN: usize = 1;

/// How many locks fit on a screen of `lines`.
pub(super) fn locks_on(lines: u16) -> usize {
    let lines = usize::from(lines);
    lines.saturating_sub(ABOVE + BELOW + queue_on(lines)).max(1)
}

fn queue_on(lines: usize) -> usize {
    if lines < ROOM_FOR_QUEUE { 0 } else { QUEUE }
}

/// Draws the view as it is at `now`.
pub(super) fn draw(frame: &mut Frame<'_>, top: &mut Top, now: WallTime, in_colour: bool) {
    let area = frame.area();
    let red = Style::new().add_modifier(Modifier::BOLD);
    let red = if in_colour { red.fg(Color::Red) } else { red };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let width = usize::from(area.width);
    let columns = columns();
    let height = locks_on(area.height);
    let rows: Vec<Vec<String>> = top.page(height).map(|lock| row(lock, top, now)).collect();
    widen(&mut top.widest, &rows, columns.len());
    let top = &*top;
    let mut lines: Vec<(String, Style)> = vec![(title(top, now), bold)];
    lines.push(match &top.failure {
        Some((since, why)) => (silence(*since, why, now), red),
        None => servers(top).map_or_else(Default::default, |(text, is_short)| {
            (text, if is_short { red } else { Style::new() })
        }),
    });
    if top.prompt == Prompt::Help {
        lines.extend(KEYS.map(|(key, does)| (format!("  {key:<11}{does}"), Style::new())));
    } else {
        let all = rows.iter().chain([&top.widest]);
        let layout = Layout::fit(&columns, all.map(Vec::as_slice), Some(width));
        lines.push((layout.head(&columns), bold));
        for (lock, row) in top.page(height).zip(&rows) {
            let style = match top.is_selected(lock) {
                true => reversed,
                false => Style::new(),
            };
            lines.push((padded(&layout.line(row), width), style));
        }
        if rows.is_empty() && top.snapshot.is_some() {
            lines.push(("no lock is held that matches".into(), Style::new()));
        }
    }
    let queue = match top.prompt {
        Prompt::Help => 0,
        _ => queue_on(usize::from(area.height)),
    };
    let bottom = usize::from(area.height).saturating_sub(queue + BELOW);
    lines.resize_with(bottom, Default::default);
    lines.extend(queue_lines(top, queue, width, now).map(|line| (line, Style::new())));
    lines.resize_with(bottom + queue, Default::default);
    lines.push((prompt(top, width), bold));
    for (y, (text, style)) in (area.y..area.bottom()).zip(lines) {
        let line = Rect::new(area.x, y, area.width, 1);
        frame.render_widget(Line::styled(printable(&text), style), line);
    }
}

/// Notes the widest text of each column. The length of a queue is read after the first picture, and has a place before.
fn widen(widest: &mut Vec<String>, rows: &[Vec<String>], columns: usize) {
    if widest.is_empty() {
        widest.resize(columns, String::new());
        widest[QUEUE_COLUMN] = "0".into();
    }
    for row in rows {
        for (widest, cell) in widest.iter_mut().zip(row) {
            if cell != UNKNOWN && cell.width() > widest.width() {
                widest.clone_from(cell);
            }
        }
    }
}

/// The first line: the store, the counts, and the time.
fn title(top: &Top, now: WallTime) -> String {
    let counts = match &top.snapshot {
        Some(snapshot) => {
            let all = snapshot.listing.locks.len();
            let more = if snapshot.listing.more { "+" } else { "" };
            match top.count() {
                1 if all == 1 => "1 lock".into(),
                count if count == all => format!("{all}{more} locks"),
                count => format!("{count} of {all}{more} locks"),
            }
        }
        None => "asking the store".into(),
    };
    let order = if top.reversed { " (reversed)" } else { "" };
    let filter = match top.filter.as_str() {
        "" => String::new(),
        filter => format!("   filter: {filter}"),
    };
    format!(
        "leasehold top   {}   {counts}   by {}{order}{filter}   {}",
        timestamp(now),
        top.sort.name(),
        top.store,
    )
}

/// How long the store has been silent, and why.
fn silence(since: WallTime, why: &str, now: WallTime) -> String {
    let span = lock_table::age(since, now);
    format!("the store does not answer ({span}): {why}")
}

/// The servers of a quorum, and whether too few of them have a vote.
fn servers(top: &Top) -> Option<(String, bool)> {
    let members = &top.snapshot.as_ref()?.members;
    if members.is_empty() {
        return None;
    }
    let out: Vec<String> = members
        .iter()
        .filter_map(|(id, why)| why.as_ref().map(|why| format!("{id}: {why}")))
        .collect();
    let (all, voting) = (members.len(), members.len() - out.len());
    let mut text = format!("{voting} of {all} servers have a vote");
    for out in out {
        text += &format!("; {out}");
    }
    Some((text, voting <= all / 2))
}

/// The columns of `ls`, and the length of the queue.
fn columns() -> Vec<Column> {
    let mut columns = lock_table::COLUMNS.to_vec();
    columns.insert(QUEUE_COLUMN, Column::whole("QUEUE", 1));
    columns
}

/// One row for each lock.
fn row(lock: &ListedLock, top: &Top, now: WallTime) -> Vec<String> {
    let Some(snapshot) = &top.snapshot else {
        return Vec::new();
    };
    let elapsed = now.as_micros().saturating_sub(snapshot.at.as_micros());
    let mut lock = lock.clone();
    for sight in &mut lock.holders {
        let left = sight.holder.remaining;
        sight.holder.remaining = left.map(|it| it.saturating_sub(Duration::from_micros(elapsed)));
    }
    let mut rows = lock_table::rows(&lock, &snapshot.listing, now).into_iter();
    let mut row = rows.next().unwrap_or_default();
    let others = lock.holders.len().saturating_sub(1);
    if let (Some(note), 1..) = (row.last_mut(), others) {
        let text = format!("and {others} more");
        *note = match note.as_str() {
            "" => text,
            note => format!("{note}, {text}"),
        };
    }
    let queue = queue(snapshot, &lock).map_or(UNKNOWN.into(), |it| it.len().to_string());
    row.insert(QUEUE_COLUMN, queue);
    row
}

fn queue<'a>(snapshot: &'a Snapshot, lock: &ListedLock) -> Option<&'a Vec<Waiter>> {
    snapshot.queues.get(&lock.key)
}

/// The first waiters of the selected lock.
fn queue_lines(
    top: &Top,
    count: usize,
    width: usize,
    now: WallTime,
) -> impl Iterator<Item = String> {
    let selected = top.selected();
    let waiters = selected
        .zip(top.snapshot.as_ref())
        .and_then(|(lock, snapshot)| queue(snapshot, lock));
    let waiters = waiters.map(Vec::as_slice).unwrap_or_default();
    let shown = waiters.iter().take(count.saturating_sub(2));
    let rows: Vec<Vec<String>> = (1..)
        .zip(shown)
        .map(|(position, waiter)| waiter_text::row(position, waiter, now))
        .collect();
    let columns = &waiter_text::COLUMNS;
    let layout = Layout::fit(columns, rows.iter().map(Vec::as_slice), Some(width));
    let title = selected.filter(|_| !rows.is_empty()).map(|lock| {
        let noun = if waiters.len() == 1 {
            "waiter"
        } else {
            "waiters"
        };
        format!("{}: {} {noun}", lock.key, waiters.len())
    });
    let head = title.map(|title| [title, layout.head(columns)]);
    let lines = rows.into_iter().map(move |row| layout.line(&row));
    let head = head.into_iter().flatten();
    head.chain(lines).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::looking::top::state::Press;
    use crate::commands::looking::top::state::tests::{snapshot, top};
    use leasehold::Mode;
    use leasehold::env::SystemEntropy;
    use leasehold::look::{ClientId, ClientInfo, Owner};
    use leasehold::store::Ticket;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// The screen as text, without blanks at the ends of lines.
    fn drawn(top: &mut Top, width: u16, height: u16, now: WallTime) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, top, now, true)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| {
            let cells = (0..width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..height).map(|y| line(y) + "\n").collect()
    }

    const NOW: WallTime = WallTime::from_micros(1_795_452_525_000_000);

    fn at(secs: u64) -> WallTime {
        WallTime::from_micros(NOW.as_micros() - secs * 1_000_000)
    }

    fn waiter(secs: u64, host: &str, command: &str) -> Waiter {
        let id = ClientId::random(&SystemEntropy);
        let owner = Owner::random(id, &SystemEntropy);
        let ticket = Ticket {
            since: at(secs),
            waiter: owner,
        };
        let mut waiter = Waiter::unknown(ticket, Mode::Exclusive);
        let mut client = ClientInfo::new(id, host.into(), 5201, "leasehold".into(), at(secs));
        client.user = Some("bea".into());
        client.command = Some(command.into());
        waiter.client = Some(client);
        waiter
    }

    /// A view of a quorum with three locks. One of them has a queue.
    fn example() -> Top {
        let mut found = snapshot(&["backup", "deploy", "report"]);
        let of = [
            ("db-1", 9_000, "pg_dump"),
            ("web-1", 252, "./deploy.sh"),
            ("web-2", 31, "./report.sh"),
        ];
        for (lock, (host, secs, command)) in found.listing.locks.iter_mut().zip(of) {
            lock.holders[0].holder =
                lock_table::tests::holder(at(secs).as_micros() / 1_000_000, host, command);
        }
        found.at = NOW;
        let deploy = found.listing.locks[1].key.clone();
        let queue = vec![
            waiter(12, "web-2", "./deploy.sh"),
            waiter(3, "web-3", "./deploy.sh"),
        ];
        found.queues = [(deploy, queue)].into_iter().collect();
        for lock in [0, 2] {
            let key = found.listing.locks[lock].key.clone();
            found.queues.insert(key, Vec::new());
        }
        let members = ["a:6379", "b:6379", "c:6379"];
        found.members = members.map(|id| (id.to_owned(), None)).into();
        let mut top = Top::new(
            "redis quorum a:6379, b:6379, c:6379".into(),
            Duration::from_secs(2),
        );
        top.answered(Ok(found), NOW);
        top.press(Press::Down, 10);
        top
    }

    #[test]
    fn readme_shows_what_top_draws() {
        const BEGIN: &str =
            "<!-- top: written by the test `readme_shows_what_top_draws` -->\n```text\n";
        const END: &str = "```\n<!-- end of top -->";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("where the picture begins");
        let (_, after) = rest.split_once(END).expect("where the picture ends");
        let picture = drawn(&mut example(), 100, 14, NOW);
        let written = format!("{before}{BEGIN}{picture}{END}{after}");
        if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
            std::fs::write(path, &written).unwrap();
        }
        assert_eq!(page, written);
    }

    #[test]
    fn every_size_is_drawn() {
        let mut top = example();
        for prompt in [Prompt::Help, Prompt::Browse] {
            top.prompt = prompt;
            for (width, height) in [(1, 1), (20, 3), (60, 13), (80, 24), (200, 60)] {
                drawn(&mut top, width, height, NOW);
            }
        }
        assert!(drawn(&mut top, 60, 20, NOW).contains("web-1"));
        top.answered(Ok(snapshot(&[])), NOW);
        let text = drawn(&mut top, 60, 13, NOW);
        assert!(text.contains("no lock is held that matches"), "{text}");
    }

    #[test]
    fn silence_and_its_reason_are_shown() {
        let mut top = example();
        top.answered(Err("connection refused".into()), at(7));
        let text = drawn(&mut top, 80, 14, NOW);
        let line = "the store does not answer (7s): connection refused";
        assert_eq!(text.lines().nth(1), Some(line));
        assert!(text.contains("deploy"), "the last answer stays: {text}");
    }

    #[test]
    fn servers_without_a_vote_are_named() {
        let mut found = snapshot(&["x"]);
        let refused = Some("connection refused".to_owned());
        found.members = vec![
            ("a".into(), None),
            ("b".into(), refused.clone()),
            ("c".into(), refused),
        ];
        let mut top = Top::new("s".into(), Duration::from_millis(500));
        top.answered(Ok(found), NOW);
        let text = drawn(&mut top, 100, 8, NOW);
        let line = "1 of 3 servers have a vote; b: connection refused; c: connection refused";
        assert_eq!(text.lines().nth(1), Some(line));
        assert!(text.contains("(every 500ms)"), "{text}");
    }

    #[test]
    fn queue_counts_the_waiters_that_are_not_shown() {
        let mut found = snapshot(&["deploy"]);
        let queue: Vec<Waiter> = (0..7).map(|secs| waiter(secs, "web-2", "x")).collect();
        let key = found.listing.locks[0].key.clone();
        found.queues = [(key, queue)].into_iter().collect();
        let mut top = top(&[]);
        top.answered(Ok(found), NOW);
        let text = drawn(&mut top, 80, 14, NOW);
        assert!(text.contains("deploy: 7 waiters"), "{text}");
        assert_eq!(text.matches("web-2").count(), 3, "{text}");
    }

    #[test]
    fn keys_fit_a_narrow_screen() {
        let mut top = example();
        let text = drawn(&mut top, 80, 14, NOW);
        assert!(text.ends_with("? help   (every 2s)\n"), "{text}");
        top.press(Press::Char('?'), 10);
        let text = drawn(&mut top, 80, 14, NOW);
        for (key, does) in KEYS {
            assert!(text.contains(key) && text.contains(does), "{key}: {text}");
        }
    }

    #[test]
    fn narrow_screen_keeps_keys_and_questions() {
        let name = "a/long/name/of/a/lock/for/a/narrow/screen";
        let mut top = top(&[name]);
        let mut bottom = |presses: &str| {
            for press in presses.chars().map(Press::Char) {
                top.press(press, 10);
            }
            if presses.is_empty() {
                top.press(Press::Enter, 10);
            }
            let text = drawn(&mut top, 40, 14, NOW);
            text.lines().last().map(str::to_owned).unwrap()
        };
        assert_eq!(bottom("/"), "filter: _   (Enter: keep, Esc: all)");
        assert_eq!(bottom(""), "q quit   / filter   b break   ? help");
        let line = bottom("bhangs");
        assert_eq!(line, "reason to break a/long/…: hangs_   (Esc:");
        let line = bottom(" and the disk is full");
        assert_eq!(line, "reason to break a/long/…: …disk is full_");
        let line = bottom("");
        assert_eq!(line, "break a/long…? y: yes, any other key: no");
    }

    #[test]
    fn narrow_screen_keeps_the_time_held() {
        let text = drawn(&mut example(), 40, 14, NOW);
        assert!(text.contains("HELD FOR") && text.contains("4m"), "{text}");
    }

    /// Nor does a column come or go.
    #[test]
    fn columns_keep_their_places() {
        let mut top = example();
        let head = |top: &mut Top| drawn(top, 100, 14, NOW).lines().nth(2).map(str::to_owned);
        let mut first = example();
        first.snapshot.as_mut().unwrap().queues.clear();
        assert_eq!(
            head(&mut first),
            head(&mut top),
            "before the queues are known"
        );
        let before = head(&mut top);
        top.answered(Ok(snapshot(&["x"])), NOW);
        assert_eq!(head(&mut top), before);
    }

    #[test]
    fn break_shows_lock_keys_and_holder_first() {
        let mut top = example();
        for press in "bhangs".chars().map(Press::Char) {
            top.press(press, 10);
        }
        let text = drawn(&mut top, 100, 14, NOW);
        assert!(text.contains("reason to break deploy: hangs_"), "{text}");
        top.press(Press::Enter, 10);
        let text = drawn(&mut top, 80, 14, NOW);
        let line = "break deploy? y: yes, any other key: no   held by leasehold (pid 4711 on web-1";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn ten_thousand_locks_draw_one_page() {
        let names: Vec<String> = (0..10_000).map(|n| format!("job-{n:05}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut top = top(&[]);
        let mut found = snapshot(&names[..90]);
        let locks = std::mem::take(&mut found.listing.locks);
        found.listing.locks = locks.iter().cycle().take(10_000).cloned().collect();
        for (lock, name) in found.listing.locks.iter_mut().zip(&names) {
            lock.key = leasehold::Key::new(name).unwrap();
        }
        top.answered(Ok(found), NOW);
        top.press(Press::End, locks_on(24));
        let text = drawn(&mut top, 80, 24, NOW);
        assert!(
            text.contains("10000 locks") && text.contains("job-09999"),
            "{text}"
        );
        assert_eq!(top.shown(locks_on(24)).len(), 10_000 % locks_on(24));
    }
}
