use leasehold::Fence;
use leasehold::look::BreakRecord;
use serde_json::{Value, json};

use crate::output::time_text;

/// How a lock was broken, as a line for people.
pub(crate) fn line(name: &str, record: &BreakRecord) -> String {
    let when = time_text::timestamp(record.at);
    let how = if record.at_once {
        " and released at once"
    } else {
        ""
    };
    let lease = lease(record);
    format!("{name}: the lease with {lease} was broken{how} at {when} by {record}\n")
}

/// Which lease was broken.
pub(crate) fn lease(record: &BreakRecord) -> String {
    match record.fence {
        Some(fence) => format!("fence {fence}"),
        None => format!("owner {}", record.owner),
    }
}

/// How a lock was broken, for programs.
pub(crate) fn json(record: &BreakRecord) -> Value {
    json!({
        "fence": record.fence.map(Fence::get),
        "owner": record.owner.to_string(),
        "now": record.at_once,
        "at": time_text::timestamp(record.at),
        "user": record.user,
        "host": record.by.host,
        "pid": record.by.pid,
        "program": record.by.program,
        "reason": record.reason,
    })
}
