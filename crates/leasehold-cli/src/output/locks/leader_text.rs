use leasehold::election::{Leader, LeaderChange};
use serde_json::{Value, json};

use crate::output::time_text;

/// One line for people: the leader of `name`.
pub(crate) fn line(name: &str, change: &LeaderChange) -> String {
    match change {
        LeaderChange::Leads(leader) => format!("{name}: led by {}", phrase(leader)),
        LeaderChange::Unknown(error) => format!("{name}: unknown leader: {error}"),
        // No leader, or an event of a later version of the library.
        _ => format!("{name}: no leader"),
    }
}

fn phrase(leader: &Leader) -> String {
    let since = time_text::timestamp(leader.since);
    let text = format!("{leader} since {since}, fence {}", leader.fence);
    if leader.value.is_empty() {
        return text;
    }
    // Quoted, because another user wrote it and it may contain anything.
    format!("{text}, value {:?}", leader.value)
}

/// One object for programs.
pub(crate) fn json(name: &str, change: &LeaderChange) -> Value {
    match change {
        LeaderChange::Leads(leader) => json!({
            "event": "leads",
            "name": name,
            "leader": fields(leader),
        }),
        LeaderChange::Unknown(error) => json!({
            "event": "unknown",
            "name": name,
            "reason": error.to_string(),
        }),
        _ => json!({"event": "nobody", "name": name}),
    }
}

fn fields(leader: &Leader) -> Value {
    let client = leader.client.as_ref();
    json!({
        "fence": leader.fence.get(),
        "value": leader.value,
        "since": time_text::timestamp(leader.since),
        "owner": leader.owner.to_string(),
        "host": client.map(|client| &client.host),
        "pid": client.map(|client| client.pid),
        "program": client.map(|client| &client.program),
        "user": client.and_then(|client| client.user.as_ref()),
        "label": client.and_then(|client| client.label.as_ref()),
        "command": client.and_then(|client| client.command.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::{Error, ErrorKind};

    #[test]
    fn unknown_leader_is_printed_with_the_reason() {
        let error = Error::new(ErrorKind::NoQuorum, "2 of 3 members do not answer");
        let unknown = LeaderChange::Unknown(error);
        assert_eq!(
            line("x", &unknown),
            "x: unknown leader: 2 of 3 members do not answer"
        );
        let value = json("x", &unknown);
        assert_eq!(value["event"], "unknown");
        assert_eq!(line("x", &LeaderChange::Nobody), "x: no leader");
        assert_eq!(json("x", &LeaderChange::Nobody)["event"], "nobody");
    }
}
