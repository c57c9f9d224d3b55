use leasehold::{Error, ErrorKind};

use crate::client::{Code, Meaning};

/// Returns the error for a request about `path` that the server refuses. A reason that may pass is an outage.
pub(super) fn refused(path: &str, code: Code) -> Error {
    let advice = match code {
        Code::NO_AUTH => "; `leasehold doctor` shows the command that grants it",
        _ => "",
    };
    let text = format!("{path}: {}, code {}{advice}", code.name(), code.0);
    match code.meaning() {
        Meaning::NotReady => Error::new(ErrorKind::Unreachable, text).with_not_ready(),
        Meaning::Lost => Error::new(ErrorKind::Unreachable, text),
        Meaning::Refused | Meaning::Node => Error::new(ErrorKind::Refused, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_go_on_if_a_reason_may_pass() {
        for (code, is_retried) in [
            (-102, false),
            (-115, false),
            (-8, false),
            (-125, true),
            (-127, true),
            (-112, true),
        ] {
            let error = refused("/x", Code(code));
            assert_eq!(error.is_retryable(), is_retried, "{error}");
        }
    }
}
