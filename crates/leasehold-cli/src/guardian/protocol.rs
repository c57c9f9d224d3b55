//! What wrapper and guardian say to each other: one line of text per message, through a pipe in
//! each direction. Both ends are the same program, so the format may change at any time.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::str::FromStr;

use leasehold::clock::BootInstant;

use crate::guardian::release_order::ReleaseOrder;

/// From the wrapper to the guardian. The end of the pipe is the last message: the wrapper is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlMessage {
    /// Release these locks if the wrapper is killed. It comes first.
    Release(ReleaseOrder),
    /// The lease now ends at this deadline; `None`: it has no end.
    Deadline(Option<BootInstant>),
    /// The lock is lost: end the processes.
    Lost,
    /// The wrapper received this signal: pass it on, unless the command received it as well.
    Signal(i32),
    /// The wrapper continues after a stop: so must the command.
    Continue,
}

/// From the guardian to the wrapper. The pipe's end without [`Report::Ended`],
/// [`Report::NotStarted`] or [`Report::TooLate`] means that the guardian was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// CMD runs, under this process id.
    Started(i32),
    /// CMD could not be started, for this `errno`.
    NotStarted(i32),
    /// CMD was not started: the deadline was too near.
    TooLate,
    /// CMD was stopped by this signal.
    Stopped(i32),
    /// Time is up without a renewal: the processes are being ended.
    Ending,
    /// CMD has ended with this status, and so, if they had to be ended, have all the others.
    Ended(ExitStatus),
}

/// A line that neither side would write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unintelligible;

impl fmt::Display for ControlMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(order) => write!(f, "release {}", order.to_line()),
            Self::Deadline(Some(deadline)) => write!(f, "deadline {}", deadline.as_nanos()),
            Self::Deadline(None) => f.write_str("no-deadline"),
            Self::Lost => f.write_str("lost"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Continue => f.write_str("continue"),
        }
    }
}

impl FromStr for ControlMessage {
    type Err = Unintelligible;

    fn from_str(line: &str) -> Result<Self, Unintelligible> {
        match words(line) {
            ("release", Some(order)) => {
                let order = ReleaseOrder::from_line(order).ok_or(Unintelligible)?;
                Ok(Self::Release(order))
            }
            ("deadline", Some(nanos)) => {
                number(nanos).map(|nanos| Self::Deadline(Some(BootInstant::from_nanos(nanos))))
            }
            ("no-deadline", None) => Ok(Self::Deadline(None)),
            ("lost", None) => Ok(Self::Lost),
            ("signal", Some(signal)) => number(signal).map(Self::Signal),
            ("continue", None) => Ok(Self::Continue),
            _ => Err(Unintelligible),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => write!(f, "started {pid}"),
            Self::NotStarted(errno) => write!(f, "not-started {errno}"),
            Self::TooLate => f.write_str("too-late"),
            Self::Stopped(signal) => write!(f, "stopped {signal}"),
            Self::Ending => f.write_str("ending"),
            Self::Ended(status) => write!(f, "ended {}", status.into_raw()),
        }
    }
}

impl FromStr for Report {
    type Err = Unintelligible;

    fn from_str(line: &str) -> Result<Self, Unintelligible> {
        match words(line) {
            ("started", Some(pid)) => number(pid).map(Self::Started),
            ("not-started", Some(errno)) => number(errno).map(Self::NotStarted),
            ("too-late", None) => Ok(Self::TooLate),
            ("stopped", Some(signal)) => number(signal).map(Self::Stopped),
            ("ending", None) => Ok(Self::Ending),
            ("ended", Some(status)) => {
                number(status).map(|status| Self::Ended(ExitStatus::from_raw(status)))
            }
            _ => Err(Unintelligible),
        }
    }
}

fn words(line: &str) -> (&str, Option<&str>) {
    match line.split_once(' ') {
        Some((word, rest)) => (word, Some(rest)),
        None => (line, None),
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, Unintelligible> {
    text.parse().map_err(|_| Unintelligible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_its_text_form() {
        let order = |password: Option<&str>| ReleaseOrder {
            urls: vec!["redis://a b/\n".into(), "redis://c".into()],
            password: password.map(str::to_owned),
            handles: vec!["lh1_00".into()],
        };
        for message in [
            ControlMessage::Release(order(None)),
            ControlMessage::Release(order(Some("p w"))),
            ControlMessage::Deadline(Some(BootInstant::from_nanos(u64::MAX))),
            ControlMessage::Deadline(None),
            ControlMessage::Lost,
            ControlMessage::Signal(15),
            ControlMessage::Continue,
        ] {
            assert_eq!(message.to_string().parse(), Ok(message));
        }
        for report in [
            Report::Started(4711),
            Report::NotStarted(2),
            Report::TooLate,
            Report::Stopped(20),
            Report::Ending,
            Report::Ended(ExitStatus::from_raw(3 << 8)),
            Report::Ended(ExitStatus::from_raw(9)),
        ] {
            assert_eq!(report.to_string().parse(), Ok(report));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for line in ["", "lost 1", "signal", "signal x", "deadline -1", "stop"] {
            assert_eq!(
                line.parse::<ControlMessage>(),
                Err(Unintelligible),
                "{line:?}"
            );
        }
        for line in ["", "started", "ended x", "ending 1"] {
            assert_eq!(line.parse::<Report>(), Err(Unintelligible), "{line:?}");
        }
    }
}
