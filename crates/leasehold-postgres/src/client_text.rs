//! How clients and breaks are written in the tables, as JSON that people can query.

use leasehold::clock::WallTime;
use leasehold::store::{BreakRecord, ClientInfo, Owner};
use leasehold::{Error, ErrorKind, Fence};
use serde::{Deserialize, Serialize};

/// Returns the text of a client.
pub(crate) fn client(client: &ClientInfo) -> Result<String, Error> {
    serde_json::to_string(client).map_err(no_text)
}

/// Returns the client that a text names; `None` if it is no client.
pub(crate) fn read_client(text: &str) -> Option<ClientInfo> {
    serde_json::from_str(text).ok()
}

/// Returns the text of a break.
pub(crate) fn break_record(record: &BreakRecord) -> Result<String, Error> {
    let text = BreakText {
        owner: record.owner.to_string(),
        fence: record.fence.get(),
        at_once: record.at_once,
        by: record.by.clone(),
        user: record.user.clone(),
        reason: record.reason.clone(),
        at: record.at.as_micros(),
    };
    serde_json::to_string(&text).map_err(no_text)
}

/// Returns the break that a text names.
pub(crate) fn read_break(text: &str) -> Result<BreakRecord, Error> {
    let invalid = || {
        Error::new(
            ErrorKind::InvalidResponse,
            format!("{text:?} is no record of a break"),
        )
    };
    let text: BreakText =
        serde_json::from_str(text).map_err(|error| invalid().with_source(error))?;
    let owner: Owner = text.owner.parse().map_err(|_| invalid())?;
    let fence = Fence::new(text.fence).ok_or_else(invalid)?;
    let mut record = BreakRecord::new(owner, fence, text.by, WallTime::from_micros(text.at));
    record.at_once = text.at_once;
    record.user = text.user;
    record.reason = text.reason;
    Ok(record)
}

#[derive(Serialize, Deserialize)]
struct BreakText {
    owner: String,
    fence: u64,
    at_once: bool,
    by: ClientInfo,
    user: Option<String>,
    reason: Option<String>,
    at: u64,
}

fn no_text(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidInput, "no text form").with_source(error)
}
