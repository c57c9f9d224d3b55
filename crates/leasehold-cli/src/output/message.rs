use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::BreakRecord;
use leasehold::{Fence, GuardSet};
use serde_json::{Map, Value, json};

use crate::output::colour::Style;
use crate::output::envelope::stamped;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::break_text;
use crate::output::locks::wait::Wait;
use crate::output::once_answer::OnceAnswer;
use crate::output::time_text;
use crate::output::verbosity::Verbosity;

/// A message of the program: a text for people, or a JSON object for programs.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// The lock is machine-local by default.
    Notice(&'a str),
    /// A problem that does not stop the program.
    Warning(&'a str),
    /// A problem with one server. If the program fails because of it, the error says so.
    ServerWarning(&'a str),
    /// Another client seems to hold the lock, or too few servers have a vote.
    Waiting(Wait<'a>),
    /// All requested locks are held from now on.
    Acquired {
        lock: &'a str,
        guards: &'a GuardSet,
        store: &'a str,
        after: Duration,
    },
    /// The command has ended, and the locks are released.
    Released {
        lock: &'a str,
        held: Duration,
        code: ExitCode,
    },
    /// The run has ended, and the lock may stay held.
    StillHeld {
        lock: &'a str,
        /// When its lease has ended.
        until: WallTime,
        reason: &'a str,
    },
    /// The command runs under a lock that an outer run holds.
    Nested {
        lock: &'a str,
        fence: u64,
        store: &'a str,
    },
    /// The lock is lost, or will be in a moment; the command is being ended.
    Lost { lock: &'a str, reason: &'a str },
    /// This program leads, and observers can see it.
    Leads {
        name: &'a str,
        fence: Fence,
        value: &'a str,
    },
    /// It no longer leads, and campaigns again after a pause.
    Campaigns { name: &'a str, after: Duration },
    /// The record of the operator who broke the lost lock.
    Broken {
        lock: &'a str,
        record: &'a BreakRecord,
    },
    /// The result of a request.
    Once(OnceAnswer<'a>),
    /// The reason for the end of the program.
    Error(&'a Failure),
    /// The program ends with this code.
    End(ExitCode),
}

impl Message<'_> {
    /// One line for people; `None` for messages that only programs need.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Notice(text) => Some((*text).into()),
            Self::Warning(text) | Self::ServerWarning(text) => Some(format!("warning: {text}")),
            Self::Waiting(wait) => Some(wait.text()),
            Self::Acquired { lock, after, .. } => {
                let after = time_text::passed(*after);
                Some(format!("acquired lock {lock:?} after {after}"))
            }
            Self::Released { lock, held, code } => {
                let held = time_text::passed(*held);
                Some(format!(
                    "released lock {lock:?} after {held}, exit {}",
                    code.get()
                ))
            }
            Self::StillHeld {
                lock,
                until,
                reason,
            } => Some(format!(
                "warning: lock {lock:?} may stay held until {}: {reason}",
                time_text::timestamp(*until)
            )),
            Self::Nested { .. } | Self::Leads { .. } | Self::Once(_) | Self::End(_) => None,
            Self::Lost { lock, reason } => Some(format!("lost lock {lock:?}: {reason}")),
            Self::Campaigns { name, after } => {
                let after = time_text::whole_millis(*after);
                Some(format!("campaigning for {name:?} again in {after}"))
            }
            Self::Broken { lock, record } => Some(format!("lock {lock:?} was broken by {record}")),
            Self::Error(failure) => Some(failure.to_string()),
        }
    }

    /// The text for the last line of a terminal, whose edge may cut it.
    pub(crate) fn status_line(&self) -> Option<String> {
        match self {
            Self::Waiting(wait) => Some(wait.status_line()),
            _ => self.text(),
        }
    }

    /// Whether people see the message. `has_waited`: they saw that the program waits.
    pub(crate) fn is_shown_at(
        &self,
        verbosity: Verbosity,
        is_terminal: bool,
        has_waited: bool,
    ) -> bool {
        match self {
            Self::Warning(_) | Self::StillHeld { .. } | Self::Lost { .. } | Self::Broken { .. } => {
                true
            }
            Self::Error(failure) => verbosity > Verbosity::Quiet || !failure.is_busy,
            // What is wrong, while the wait for a holder is not.
            Self::Waiting(wait) if wait.outage.is_some() => verbosity > Verbosity::Quiet,
            Self::Notice(_) | Self::Waiting(_) => match verbosity {
                Verbosity::Quiet => false,
                Verbosity::Normal => is_terminal,
                Verbosity::Verbose => true,
            },
            Self::Acquired { .. } | Self::Released { .. } => match verbosity {
                Verbosity::Quiet => false,
                Verbosity::Normal => has_waited,
                Verbosity::Verbose => true,
            },
            _ => verbosity > Verbosity::Quiet,
        }
    }

    /// Whether the message is about a span of time, so that its end matters to readers of a log.
    pub(crate) fn has_time(&self) -> bool {
        matches!(
            self,
            Self::Waiting(_) | Self::Acquired { .. } | Self::Released { .. } | Self::Lost { .. }
        )
    }

    /// The style of the prefix in the text.
    pub(crate) fn style(&self) -> Option<Style> {
        match self {
            Self::Warning(_) | Self::ServerWarning(_) | Self::StillHeld { .. } => {
                Some(Style::Yellow)
            }
            Self::Error(_) | Self::Lost { .. } => Some(Style::Red),
            _ => None,
        }
    }

    /// One object for programs; `event` names the message.
    pub(crate) fn json(&self) -> Value {
        stamped(self.fields())
    }

    fn fields(&self) -> Value {
        match self {
            Self::Notice(text) => json!({"event": "notice", "message": text}),
            Self::Warning(text) | Self::ServerWarning(text) => {
                json!({"event": "warning", "message": text})
            }
            Self::Waiting(wait) => wait.json(),
            Self::Acquired {
                lock,
                guards,
                store,
                after,
            } => acquired_fields(lock, guards, store, *after),
            Self::Released { lock, held, code } => json!({
                "event": "released",
                "lock": lock,
                "held_ms": time_text::millis(*held),
                "exit_code": code.get(),
            }),
            Self::StillHeld {
                lock,
                until,
                reason,
            } => json!({
                "event": "still_held",
                "lock": lock,
                "until": time_text::instant(*until),
                "reason": reason,
            }),
            Self::Nested { lock, fence, store } => {
                json!({"event": "nested", "lock": lock, "fence": fence, "store": store})
            }
            Self::Lost { lock, reason } => {
                json!({"event": "lost", "lock": lock, "reason": reason})
            }
            Self::Leads { name, fence, value } => json!({
                "event": "leads",
                "name": name,
                "fence": fence.get(),
                "value": value,
            }),
            Self::Campaigns { name, after } => json!({
                "event": "campaigns",
                "name": name,
                "after_ms": time_text::millis(*after),
            }),
            Self::Broken { lock, record } => json!({
                "event": "broken",
                "lock": lock,
                "broken": break_text::json(record),
            }),
            Self::Once(answer) => answer.json(),
            Self::Error(failure) => json!({
                "event": "error",
                "message": failure.to_string(),
                "exit_code": failure.code.get(),
            }),
            Self::End(code) => json!({"event": "end", "exit_code": code.get()}),
        }
    }
}

/// The names of the held locks, each with its fence.
pub(crate) fn fences(guards: &GuardSet) -> Map<String, Value> {
    let fences = guards.fences();
    fences
        .map(|(key, fence)| (key.to_string(), fence.get().into()))
        .collect()
}

/// What a run has acquired.
fn acquired_fields(lock: &str, guards: &GuardSet, store: &str, after: Duration) -> Value {
    json!({
        "event": "acquired",
        "lock": lock,
        "fence": guards.fence(lock).map(Fence::get),
        "fences": fences(guards),
        "store": store,
        "waited_ms": time_text::millis(after),
    })
}
