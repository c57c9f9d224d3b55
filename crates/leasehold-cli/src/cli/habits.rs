//! What people type out of habit, from flock(1), timeout(1), kubectl(1) and others, and what it is called here.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Puts what the unknown argument is called here into the error. The tip of clap, to pass it as a value after
/// `--`, would make an option the name of the lock.
pub(super) fn explain(mut error: clap::Error) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return error,
    };
    let Some(ContextValue::String(given)) = error.get(kind) else {
        return error;
    };
    let advice = advice(given);
    if let Some(advice) = advice {
        // It knows better than a guess by similar letters.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        let styled = ContextValue::StyledStrs(vec![advice.into()]);
        error.insert(ContextKind::Suggested, styled);
    } else if kind == ContextKind::InvalidArg {
        error.remove(ContextKind::Suggested);
    }
    error
}

fn advice(given: &str) -> Option<&'static str> {
    if given.starts_with('-') && given[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Some("a duration or a number cannot be negative");
    }
    let name = given.split('=').next().unwrap_or(given);
    let known = HABITS.iter().find(|(names, _)| names.contains(&name));
    known.map(|(_, advice)| *advice)
}

const HABITS: [(&[&str], &str); 17] = [
    (
        &["--store", "--local"],
        "the options follow the command, as in: run --store URL NAME -- COMMAND",
    ),
    (
        &["--timeout", "--wait-time", "--wait-timeout"],
        "the maximum time to wait is -w SPAN (--wait), as in: -w 5s",
    ),
    (
        &["-x", "-e", "--exclusive", "--ex"],
        "a lock is exclusive unless -s is given; leave this option out",
    ),
    (
        &["--command"],
        "give the command after --, or a shell line with -c, as in: run NAME -c 'COMMAND'",
    ),
    (
        &["--nonblock", "--nb", "--nowait", "--non-blocking"],
        "to wait for nothing, give -n (--no-wait)",
    ),
    (
        &["--silent"],
        "to see only what is wrong, give -q (--quiet)",
    ),
    (
        &["--close"],
        "leave this option out: CMD never inherits the lock, and a process that it leaves behind does not keep it",
    ),
    (&["-f", "--follow"], "to repeat it, give --watch"),
    (
        &["-o", "--output", "--format"],
        "to print JSON, give --json",
    ),
    (
        &["-u", "--unlock", "unlock"],
        "`run` releases its lock when its command ends; `release` releases the lock of a handle",
    ),
    (
        &["lock"],
        "`run NAME -- COMMAND` locks for a command; `acquire NAME` for the steps of a script",
    ),
    (
        &["--conflict-exit-code", "--exit-code"],
        "the exit code for a busy lock is -E CODE",
    ),
    (
        &[
            "kill",
            "rm",
            "delete",
            "steal",
            "force-release",
            "force-unlock",
        ],
        "`break` takes a lock from a holder that hangs",
    ),
    (
        &["ps", "locks"],
        "`ls` lists the locks, and `top` shows them in a live view",
    ),
    (
        &["get", "info", "who"],
        "`status NAME` shows one lock, and `ls` all of them",
    ),
    (
        &["watch"],
        "`top` shows all locks in a live view, and `ls --watch` again and again",
    ),
    (&["version"], "the version is `leasehold --version`"),
];
