use std::mem;

use crate::output::message::Message;

/// Warnings about servers, until the next message.
///
/// If that is the error which ends the program, the error alone says it. The warnings of a quorum are held only while the
/// program asks for a lock. Once it waits for the lock or has it, the next message may be far, and no warning is held.
#[derive(Debug, Default)]
pub(super) struct HeldWarnings {
    held: Vec<ServerWarning>,
    /// The text of the error that ended the program.
    error: Option<String>,
    is_acquiring: bool,
    is_under_way: bool,
}

/// What is wrong with one server.
#[derive(Debug)]
pub(crate) struct ServerWarning {
    pub(crate) server: String,
    /// Whether the store has no other server.
    pub(crate) is_only: bool,
    /// Its state, such as `has no vote for 1m 1s`.
    pub(crate) state: String,
    pub(crate) reason: String,
}

impl HeldWarnings {
    /// Notes that the program asks for a lock.
    pub(super) fn begin(&mut self) {
        self.is_acquiring = true;
    }

    /// Holds `warning` back, or returns the text to print now.
    pub(super) fn hold(&mut self, warning: ServerWarning) -> Option<String> {
        let is_held = !self.is_under_way && (self.is_acquiring || warning.is_only);
        match &self.error {
            _ if !is_held => Some(text(&[warning])),
            Some(error) => (!error.contains(&warning.reason)).then(|| text(&[warning])),
            None => {
                // What is wrong with the server now, and not what seemed wrong before others answered.
                self.held.retain(|held| held.server != warning.server);
                self.held.push(warning);
                None
            }
        }
    }

    /// Returns the warnings to print before `message`, or at the end of the program. Servers in the same state share one.
    pub(super) fn release(&mut self, message: Option<&Message<'_>>) -> Vec<String> {
        match message {
            Some(Message::Waiting(_) | Message::Acquired { .. } | Message::Nested { .. }) => {
                self.is_under_way = true;
            }
            Some(Message::Error(failure)) => self.error = Some(failure.to_string()),
            _ => {}
        }
        let error = self.error.as_deref().unwrap_or_default();
        let mut unreported = mem::take(&mut self.held);
        unreported.retain(|warning| !error.contains(&warning.reason));
        let mut texts = Vec::new();
        while let Some(first) = unreported.first() {
            let (state, reason) = (first.state.clone(), first.reason.clone());
            let is_like_first = |it: &ServerWarning| it.state == state && it.reason == reason;
            let (alike, others): (Vec<_>, Vec<_>) = unreported.into_iter().partition(is_like_first);
            texts.push(text(&alike));
            unreported = others;
        }
        texts
    }

    /// Holds nothing back from now on, and returns what was held.
    pub(super) fn end(&mut self) -> Vec<String> {
        self.is_under_way = true;
        self.release(None)
    }
}

/// One sentence about servers in the same state.
fn text(warnings: &[ServerWarning]) -> String {
    let servers: Vec<&str> = warnings.iter().map(|it| it.server.as_str()).collect();
    let [first, ..] = warnings else {
        return String::new();
    };
    let state = match first.state.strip_prefix("has ") {
        Some(rest) if warnings.len() > 1 => format!("have {rest}"),
        _ => first.state.clone(),
    };
    format!("{} {state}: {}", servers.join(", "), first.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::failure::Failure;

    const TEXT: &str = "a cannot be used: refused";

    fn warning(server: &str, state: &str, reason: &str) -> ServerWarning {
        ServerWarning {
            server: server.into(),
            is_only: state == "cannot be used",
            state: state.into(),
            reason: reason.into(),
        }
    }

    fn hold(held: &mut HeldWarnings) -> Option<String> {
        held.hold(warning("a", "cannot be used", "refused"))
    }

    #[test]
    fn error_replaces_the_warning_with_its_reason() {
        let refused = Failure::usage("lock \"x\": a: refused");
        let mut held = HeldWarnings::default();
        assert_eq!(hold(&mut held), None);
        assert_eq!(held.release(Some(&Message::Error(&refused))), [""; 0]);
        assert_eq!(hold(&mut held), None, "a thread was late");
        assert_eq!(held.release(None), [""; 0]);
    }

    #[test]
    fn warning_precedes_any_other_message() {
        let other = Failure::usage("lock \"x\" is held");
        for message in [Message::Error(&other), Message::Notice("n")] {
            let mut held = HeldWarnings::default();
            assert_eq!(hold(&mut held), None);
            assert_eq!(held.release(Some(&message)), [TEXT]);
            assert_eq!(held.release(None), [""; 0]);
        }
    }

    #[test]
    fn servers_in_the_same_state_share_a_warning() {
        let mut held = HeldWarnings::default();
        let early = held.hold(warning("a", "has no vote", "refused"));
        assert_eq!(early.as_deref(), Some("a has no vote: refused"));
        held.begin();
        for (server, state, reason) in [
            ("a", "has no vote", "gets a record when b answers"),
            ("a", "has no vote for 1m 1s", "restarted"),
            ("b", "has no vote", "refused"),
            ("c", "has no vote for 1m 1s", "restarted"),
        ] {
            assert_eq!(held.hold(warning(server, state, reason)), None);
        }
        let texts = [
            "a, c have no vote for 1m 1s: restarted",
            "b has no vote: refused",
        ];
        assert_eq!(held.end(), texts);
    }

    #[test]
    fn nothing_is_held_back_later() {
        let mut held = HeldWarnings::default();
        let nested = Message::Nested {
            lock: "x",
            fence: 1,
            store: "a",
        };
        assert_eq!(held.release(Some(&nested)), [""; 0]);
        assert_eq!(hold(&mut held).as_deref(), Some(TEXT));
        let mut held = HeldWarnings::default();
        assert_eq!(held.end(), [""; 0]);
        assert_eq!(hold(&mut held).as_deref(), Some(TEXT));
    }
}
