use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::store::{BreakRecord, Holder};
use leasehold::{Fence, GuardSet};
use serde_json::{Map, Value, json};

use crate::output::colour::Style;
use crate::output::envelope::stamped;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::break_text;
use crate::output::locks::holder_text;
use crate::output::locks::waiter_text;
use crate::output::once_answer::OnceAnswer;
use crate::output::quorum_shortfall::QuorumShortfall;
use crate::output::time_text;
use crate::output::verbosity::Verbosity;

/// A message of the program: a text for people, or a JSON object for programs.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// The lock is machine-local by default.
    Notice(&'a str),
    /// A problem that does not stop the program.
    Warning(&'a str),
    /// Another client seems to hold the lock, or too few servers have a vote.
    Waiting {
        lock: &'a str,
        holders: &'a [Holder],
        /// In the queue, from 1; `None` if there is no queue or it is not known.
        position: Option<u64>,
        /// Why it cannot be granted to any client, if so.
        quorum_shortfall: Option<&'a QuorumShortfall>,
        so_far: Duration,
    },
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
            Self::Warning(text) => Some(format!("warning: {text}")),
            Self::Waiting {
                lock,
                holders,
                position,
                quorum_shortfall,
                so_far,
            } => Some(waiting(
                lock,
                holders,
                *position,
                *quorum_shortfall,
                *so_far,
            )),
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
            Self::Waiting {
                lock,
                holders,
                position,
                quorum_shortfall,
                so_far,
            } => Some(waiting_line(
                lock,
                holders,
                *position,
                *quorum_shortfall,
                *so_far,
            )),
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
            Self::Notice(_) => match verbosity {
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
            Self::Waiting { .. }
                | Self::Acquired { .. }
                | Self::Released { .. }
                | Self::Lost { .. }
        )
    }

    /// The style of the prefix in the text.
    pub(crate) fn style(&self) -> Option<Style> {
        match self {
            Self::Warning(_) | Self::StillHeld { .. } => Some(Style::Yellow),
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
            Self::Warning(text) => json!({"event": "warning", "message": text}),
            Self::Waiting {
                lock,
                holders,
                position,
                quorum_shortfall,
                so_far,
            } => {
                let mut fields = waiting_fields(lock, holders, *quorum_shortfall);
                fields["position"] = (*position).into();
                fields["waited_ms"] = time_text::millis(*so_far).into();
                fields
            }
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

/// What a wait waits for.
fn waiting_fields(
    lock: &str,
    holders: &[Holder],
    quorum_shortfall: Option<&QuorumShortfall>,
) -> Value {
    json!({
        "event": "waiting",
        "lock": lock,
        "holders": holders.iter().map(holder_text::json).collect::<Vec<_>>(),
        "reason": quorum_shortfall.map(ToString::to_string),
        "no_vote_for_ms": quorum_shortfall
            .and_then(QuorumShortfall::no_vote_for)
            .map(time_text::millis),
    })
}

/// The state of a wait in one line.
fn waiting(
    lock: &str,
    holders: &[Holder],
    position: Option<u64>,
    quorum_shortfall: Option<&QuorumShortfall>,
    so_far: Duration,
) -> String {
    let why = match quorum_shortfall {
        // A warning has named each server and its reason.
        Some(quorum_shortfall) => format!(": {}", quorum_shortfall.summary()),
        None if holders.is_empty() => String::new(),
        None => format!(", held by {}", holder_text::phrases(holders)),
    };
    let so_far = match so_far.as_secs() {
        0 => String::new(),
        secs => {
            let span = humantime::format_duration(Duration::from_secs(secs));
            format!(" for {span}")
        }
    };
    let position = queued(position);
    format!("waiting{so_far} for lock {lock:?}{position}{why}")
}

/// The same for a terminal. The process of the holder comes first, because a narrow terminal cuts off the end.
fn waiting_line(
    lock: &str,
    holders: &[Holder],
    position: Option<u64>,
    quorum_shortfall: Option<&QuorumShortfall>,
    so_far: Duration,
) -> String {
    let so_far = match so_far.as_secs() {
        0 => String::new(),
        secs => format!(" {}", humantime::format_duration(Duration::from_secs(secs))),
    };
    let position = queued(position);
    let why = match (quorum_shortfall, holders) {
        (Some(quorum_shortfall), _) => format!("{position}: {}", quorum_shortfall.summary()),
        (None, []) => position,
        (None, holders) => {
            let (who, details) = holder_text::processes(holders);
            format!(", held by {who}{position}{details}")
        }
    };
    format!("waiting{so_far} for {lock:?}{why}")
}

/// The position in the queue, as a part of a sentence.
fn queued(position: Option<u64>) -> String {
    match position {
        Some(position) => format!(", {} in the queue", waiter_text::nth(position)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::locks::lock_table::tests::holder;
    use leasehold::Mode;

    #[test]
    fn a_wait_says_how_long_and_for_whom() {
        let holders = [Holder::unknown(Mode::Exclusive)];
        let message = Message::Waiting {
            lock: "deploy",
            holders: &holders,
            position: Some(2),
            quorum_shortfall: None,
            so_far: Duration::from_millis(61_900),
        };
        assert_eq!(
            message.text().unwrap(),
            "waiting for 1m 1s for lock \"deploy\", 2nd in the queue, held by a client of another \
             library"
        );
        assert_eq!(message.json()["waited_ms"], 61_900);
        assert_eq!(message.json()["position"], 2);
        assert_eq!(message.json()["holders"][0]["mode"], "exclusive");
        let first = waiting("deploy", &[], None, None, Duration::ZERO);
        assert_eq!(first, r#"waiting for lock "deploy""#);
    }

    #[test]
    fn process_of_the_holder_fits_sixty_columns() {
        let mut holder = holder(100, "web-1", "./deploy.sh --all");
        holder.remaining = Some(Duration::from_millis(9_500));
        let waited = Duration::from_secs(12);
        let line = |holders: &[Holder]| waiting_line("backup", holders, Some(2), None, waited);
        let one = line(&[holder.clone()]);
        assert_eq!(
            one,
            "waiting 12s for \"backup\", held by pid 4711 on web-1, 2nd in the queue, running \
             ./deploy.sh --all, user ann, expires in 9s unless renewed"
        );
        assert!("leasehold: ".len() + one.find(", 2nd").unwrap() <= 63);
        let others = [holder, Holder::unknown(Mode::Exclusive)];
        assert_eq!(
            line(&others),
            "waiting 12s for \"backup\", held by pid 4711 on web-1 and a client of another library, 2nd in \
             the queue"
        );
        assert_eq!(
            waiting_line("backup", &[], None, None, Duration::ZERO),
            r#"waiting for "backup""#
        );
    }
}
