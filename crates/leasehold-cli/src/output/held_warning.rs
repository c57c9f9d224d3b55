use crate::output::message::Message;

/// The warning that the only server of a store cannot be used, until the next message.
///
/// If that is the error which ends the program, the error alone says it. Once the program waits for a lock or has
/// it, the next message may be far, and no warning is held back.
#[derive(Debug, Default)]
pub(super) struct HeldWarning {
    held: Option<Warning>,
    /// The text of the error that ended the program.
    error: Option<String>,
    is_under_way: bool,
}

#[derive(Debug)]
struct Warning {
    text: String,
    reason: String,
}

impl HeldWarning {
    /// Holds `text` back, which ends with `reason`. Returns the warning to print now.
    pub(super) fn hold(&mut self, text: String, reason: &str) -> Option<String> {
        if self.is_under_way {
            return Some(text);
        }
        if let Some(error) = &self.error {
            return (!error.contains(reason)).then_some(text);
        }
        let reason = reason.to_owned();
        let earlier = self.held.replace(Warning { text, reason });
        earlier.map(|warning| warning.text)
    }

    /// Returns the warning to print before `message`, or at the end of the program.
    pub(super) fn release(&mut self, message: Option<&Message<'_>>) -> Option<String> {
        match message {
            Some(Message::Waiting { .. } | Message::Acquired { .. } | Message::Nested { .. }) => {
                self.is_under_way = true;
            }
            Some(Message::Error(failure)) => self.error = Some(failure.to_string()),
            _ => {}
        }
        let held = self.held.take()?;
        let is_said = |error: &String| error.contains(&held.reason);
        (!self.error.as_ref().is_some_and(is_said)).then_some(held.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::failure::Failure;

    const TEXT: &str = "a cannot be used: refused";

    fn hold(held: &mut HeldWarning) -> Option<String> {
        held.hold(TEXT.into(), "refused")
    }

    #[test]
    fn error_replaces_the_warning_with_its_reason() {
        let refused = Failure::usage("lock \"x\": a: refused");
        let mut held = HeldWarning::default();
        assert_eq!(hold(&mut held), None);
        assert_eq!(held.release(Some(&Message::Error(&refused))), None);
        assert_eq!(hold(&mut held), None, "a thread was late");
        assert_eq!(held.release(None), None);
    }

    #[test]
    fn warning_precedes_any_other_message() {
        let other = Failure::usage("lock \"x\" is held");
        for message in [Message::Error(&other), Message::Notice("n")] {
            let mut held = HeldWarning::default();
            assert_eq!(hold(&mut held), None);
            assert_eq!(held.release(Some(&message)).as_deref(), Some(TEXT));
            assert_eq!(held.release(None), None);
        }
    }

    #[test]
    fn nothing_is_held_back_later() {
        let mut held = HeldWarning::default();
        let nested = Message::Nested {
            lock: "x",
            fence: 1,
            store: "a",
        };
        assert_eq!(held.release(Some(&nested)), None);
        assert_eq!(hold(&mut held).as_deref(), Some(TEXT));
    }
}
