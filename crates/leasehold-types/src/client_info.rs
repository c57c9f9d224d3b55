use std::fmt;

use super::owner::ClientId;
use super::printable::is_printable;
use crate::instants::WallTime;

/// The identity of a client, written next to the locks it holds so that people can find it.
///
/// A lock keeps the identity of the client that acquired it, as long as the lease: a process that renews
/// the lease by its handle does not replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ClientInfo {
    /// The client's random identity. Every [`Owner`](crate::Owner) that it draws begins with it.
    pub id: ClientId,
    /// The name of the client's machine.
    pub host: String,
    /// The client's process id on that machine.
    pub pid: u32,
    /// The name of the client's program.
    pub program: String,
    /// When the client started, by its own wall clock.
    pub since: WallTime,
    /// The user who runs the program, if the program names one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub user: Option<Box<str>>,
    /// A text that describes the client to people, if the program sets one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub label: Option<Box<str>>,
    /// What runs while the client holds its locks, usually a command line, if the program says so.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub command: Option<Box<str>>,
}

impl ClientInfo {
    /// The greatest length of [`command`](Self::command) in bytes. A longer one is cut.
    pub const COMMAND_MAX: usize = 200;
    /// The greatest length of [`label`](Self::label) and [`user`](Self::user) in bytes. A longer one is cut.
    pub const LABEL_MAX: usize = 64;

    /// Describes a client called `id`, for stores that read what another process wrote.
    pub fn new(id: ClientId, host: String, pid: u32, program: String, since: WallTime) -> Self {
        Self {
            id,
            host,
            pid,
            program,
            since,
            user: None,
            label: None,
            command: None,
        }
    }

    /// Sets the user. Like the other texts it is escaped and cut; an empty text is none.
    #[must_use]
    pub fn with_user(mut self, user: Option<&str>) -> Self {
        self.user = user.and_then(|text| shown(text, Self::LABEL_MAX));
        self
    }

    /// Sets the label.
    #[must_use]
    pub fn with_label(mut self, label: Option<&str>) -> Self {
        self.label = label.and_then(|text| shown(text, Self::LABEL_MAX));
        self
    }

    /// Sets the command.
    #[must_use]
    pub fn with_command(mut self, command: Option<&str>) -> Self {
        self.command = command.and_then(|text| shown(text, Self::COMMAND_MAX));
        self
    }
}

impl fmt::Display for ClientInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {} on {}", self.program, self.pid, self.host)?;
        if let Some(user) = &self.user {
            write!(f, ", user {user}")?;
        }
        if let Some(label) = &self.label {
            write!(f, ", label {label}")?;
        }
        if let Some(command) = &self.command {
            write!(f, ", running {command}")?;
        }
        f.write_str(")")
    }
}

/// Returns `text` with control and format characters escaped, and cut before the character that exceeds
/// `bytes_max`. Terminals show it, and any user of the store can have written it.
fn shown(text: &str, bytes_max: usize) -> Option<Box<str>> {
    let mut shown = String::new();
    for c in text.chars() {
        let length = shown.len();
        match is_printable(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_debug()),
        }
        if shown.len() > bytes_max {
            shown.truncate(length);
            break;
        }
    }
    (!shown.is_empty()).then(|| shown.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::tests::RandomEntropy;

    fn client() -> ClientInfo {
        let id = ClientId::random(&RandomEntropy);
        ClientInfo::new(
            id,
            "web-1".into(),
            7,
            "cron".into(),
            WallTime::from_micros(1),
        )
    }

    #[test]
    fn every_known_part_is_displayed() {
        assert_eq!(client().to_string(), "cron (pid 7 on web-1)");
        let client = client()
            .with_user(Some("ann"))
            .with_label(Some("nightly"))
            .with_command(Some("backup --all"));
        assert_eq!(
            client.to_string(),
            "cron (pid 7 on web-1, user ann, label nightly, running backup --all)"
        );
    }

    #[test]
    fn texts_are_escaped_once_and_cut() {
        let client = client().with_command(Some("a\n'b' \"c\" d\\\u{202e}\u{1b}"));
        let command = client.command.as_deref().unwrap();
        assert_eq!(command, "a\\n'b' \"c\" d\\\\u{202e}\\u{1b}");
        let again = client.clone().with_command(Some(command));
        assert_eq!(again, client);
        let long = format!("{}üü", "x".repeat(ClientInfo::COMMAND_MAX - 3));
        let cut = client.with_command(Some(&long)).command.unwrap();
        assert_eq!(cut.len(), ClientInfo::COMMAND_MAX - 1);
        assert!(cut.ends_with("xü"));
    }

    #[test]
    fn empty_text_is_none() {
        assert_eq!(client().with_label(Some("")).label, None);
    }
}
