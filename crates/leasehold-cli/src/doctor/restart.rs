//! Pure: what a restart of a server would cost.

use std::time::Duration;

use super::finding::Finding;
use super::scene::{Out, Scene};
use crate::shortage::whole_seconds;

/// Whether the server in this place may be restarted now.
pub(super) fn restart(scene: &Scene, place: usize) -> Option<Finding> {
    let server = &scene.servers[place];
    let presence = server.presence()?;
    let uptime = humantime::format_duration(Duration::from_secs(presence.uptime.as_secs()));
    let cost = if presence.will_remember() {
        "it counts again at once".to_owned()
    } else {
        format!(
            "it then does not count for {}",
            whole_seconds(scene.penalty())
        )
    };
    if !scene.is_set() {
        let text = format!("runs for {uptime}");
        if presence.will_remember() {
            return Some(Finding::green(
                "restart",
                format!("{text}; a restart forgets no lock"),
            ));
        }
        let why = "a restart now lets locks be granted twice";
        let remedy = "restart it when no lock is held, or make it durable (persistence)";
        return Some(Finding::yellow("restart", text, why, remedy));
    }
    let others = scene
        .servers
        .iter()
        .enumerate()
        .filter(|(it, _)| *it != place);
    let out: Vec<(&str, &Out)> = others
        .filter_map(|(_, it)| Some((it.id.as_str(), it.out.as_ref()?)))
        .collect();
    if out.is_empty() {
        let text = format!("runs for {uptime}; may be restarted now, as all others count: {cost}");
        return Some(Finding::green("restart", text));
    }
    let names: Vec<&str> = out.iter().map(|(id, _)| *id).collect();
    let when = out
        .iter()
        .map(|(_, it)| it.again)
        .collect::<Option<Vec<_>>>();
    let remedy = match when.and_then(|spans| spans.into_iter().max()) {
        Some(span) => format!("wait {} before it is restarted", whole_seconds(span)),
        None => "see to the others before it is restarted".into(),
    };
    let text = format!("runs for {uptime}; not to be restarted now");
    let left = scene.counting() - usize::from(server.out.is_none());
    let cost = match left.checked_sub(scene.needed()) {
        Some(more) => format!("until it counts again only {more} more may fail"),
        None => "without it there is no majority".into(),
    };
    let why = format!(
        "{} not count: {cost}",
        match names.as_slice() {
            [one] => format!("{one} does"),
            _ => format!("{} do", names.join(", ")),
        }
    );
    Some(Finding::yellow("restart", text, why, remedy))
}
