//! How clients and breaks are written in the tables, as JSON that people can query.

use leasehold::look::{BreakRecord, ClientInfo};
use leasehold::{Error, ErrorKind};

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
    serde_json::to_string(record).map_err(no_text)
}

/// Returns the break that a text names.
pub(crate) fn read_break(text: &str) -> Result<BreakRecord, Error> {
    serde_json::from_str(text).map_err(|error| {
        let rule = format!("{text:?} is no record of a break");
        Error::new(ErrorKind::Corrupt, rule).with_source(error)
    })
}

fn no_text(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidInput, "no text form").with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_record_of_a_break_is_corrupt() {
        let error = read_break("{").expect_err("no record");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
