//! Pure: the effects of a restart of a server.

use std::time::Duration;

use super::snapshot::{NoVote, Snapshot};
use crate::output::finding::Finding;
use crate::output::time_text::whole_seconds;

/// Whether the server in this index may be restarted now.
pub(super) fn restart(snapshot: &Snapshot, index: usize) -> Option<Finding> {
    let server = &snapshot.servers[index];
    let status = server.status()?;
    let uptime = humantime::format_duration(Duration::from_secs(status.uptime.as_secs()));
    let cost = if status.will_remember() {
        "it has a vote again at once".to_owned()
    } else {
        format!(
            "it then has no vote for {}",
            whole_seconds(snapshot.penalty())
        )
    };
    if !snapshot.is_quorum() {
        let text = format!("runs for {uptime}");
        if status.will_remember() {
            return Some(Finding::green(
                "restart",
                format!("{text}; a restart forgets no locks"),
            ));
        }
        let why = "after a restart now, a lock could be granted twice";
        let remedy = "restart it while no lock is held, or make it durable (see persistence)";
        return Some(Finding::yellow("restart", text, why, remedy));
    }
    let others = snapshot
        .servers
        .iter()
        .enumerate()
        .filter(|(it, _)| *it != index);
    let out: Vec<(String, &NoVote)> = others
        .filter_map(|(_, it)| Some((it.id.to_string(), it.out.as_ref()?)))
        .collect();
    if out.is_empty() {
        let text = format!(
            "runs for {uptime}; may be restarted now, since all others have a vote: {cost}"
        );
        return Some(Finding::green("restart", text));
    }
    let names: Vec<&str> = out.iter().map(|(id, _)| id.as_str()).collect();
    let when = out
        .iter()
        .map(|(_, it)| it.again)
        .collect::<Option<Vec<_>>>();
    let remedy = match when.and_then(|spans| spans.into_iter().max()) {
        Some(span) => format!("wait {} before a restart", whole_seconds(span)),
        None => "fix the other servers before a restart".into(),
    };
    let text = format!("runs for {uptime}; do not restart it now");
    let left = snapshot.voting() - usize::from(server.out.is_none());
    let cost = match left.checked_sub(snapshot.needed()) {
        Some(0) => "after a restart, no further server may fail".into(),
        Some(more) => format!("after a restart, at most {more} more may fail"),
        None => "without this server there is no majority".into(),
    };
    let why = format!(
        "{} no vote: {cost}",
        match names.as_slice() {
            [one] => format!("{one} has"),
            _ => format!("{} have", names.join(", ")),
        }
    );
    Some(Finding::yellow("restart", text, why, remedy))
}
