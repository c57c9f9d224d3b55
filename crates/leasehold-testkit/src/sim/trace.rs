use std::fmt;
use std::time::Duration;

use leasehold::{Mode, Owner};

use super::execution::{Execution, Stand};
use super::history::{Event, What};

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3}  {}", self.at.as_secs_f64(), self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { client, members } => {
                write!(f, "client {client} begins, with {members} members")
            }
            Self::Asked { .. } => asked(self, f),
            Self::Granted {
                hold,
                owner,
                fence,
                until,
            } => write!(
                f,
                "h{hold}  GRANTED to {} with fence {fence}, until {}",
                short(owner),
                secs(*until)
            ),
            Self::Denied { hold, named } => write!(f, "h{hold}  denied: {named:?}"),
            Self::Cancelled { hold } => write!(f, "h{hold}  cancelled"),
            Self::Moved { hold, until } => write!(f, "h{hold}  deadline now {}", secs(*until)),
            Self::Answered { hold, valid: true } => write!(f, "h{hold}  says valid"),
            Self::Answered { hold, valid: false } => write!(f, "h{hold}  says lost"),
            Self::Lost { hold } => write!(f, "h{hold}  LOST"),
            Self::Ended { hold, how } => write!(f, "h{hold}  ends: {how:?}"),
            Self::Downgraded { hold } => write!(f, "h{hold}  is made shared"),
            Self::Released { hold, outcome } => write!(f, "h{hold}  release: {outcome:?}"),
            Self::Wrote {
                hold,
                key,
                fence,
                accepted,
            } => {
                let word = if *accepted { "accepts" } else { "REFUSES" };
                write!(f, "h{hold}  record {key} {word} fence {fence}")
            }
            Self::Read {
                hold,
                key,
                fence,
                accepted,
            } => {
                let word = if *accepted { "is read by" } else { "REFUSES" };
                write!(f, "h{hold}  record {key} {word} fence {fence}")
            }
            Self::Paused { client, frozen } => {
                let clocks = if *frozen { " with its clocks" } else { "" };
                write!(f, "client {client} stands still{clocks}")
            }
            Self::Woke { client } => write!(f, "client {client} goes on"),
            Self::Crashed { client, killed } => {
                write!(f, "client {client} CRASHES, killed: {killed}")
            }
            other => of_servers(other, f),
        }
    }
}

/// What a program wants.
fn asked(what: &What, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let What::Asked {
        hold,
        client,
        key,
        mode,
        ttl,
        delay,
        manner,
        set,
    } = what
    else {
        return Ok(());
    };
    let mode = unless_alone(*mode);
    write!(
        f,
        "h{hold}  client {client} asks for key {key}{mode}, ttl {ttl:?}"
    )?;
    if !delay.is_zero() {
        write!(f, " with a delay of {delay:?}")?;
    }
    write!(f, ", {manner:?}")?;
    match set {
        Some(first) => write!(f, ", one of the set of h{first}"),
        None => Ok(()),
    }
}

/// What happens at servers.
fn of_servers(what: &What, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match what {
        What::Sent {
            client,
            key,
            owner,
            waiter,
            ..
        } => {
            let attempt = short(owner);
            write!(f, "client {client} key {key}: attempt {attempt}")?;
            let Some(waiter) = waiter else { return Ok(()) };
            write!(f, " of waiter {}", short(waiter))
        }
        What::Executed(execution) => write!(f, "{execution}"),
        What::Looked { server, client } => {
            write!(f, "        server {server} is looked at by client {client}")
        }
        What::Holds {
            server,
            key,
            stands,
        } => {
            write!(
                f,
                "        server {server} key {key} holds {}",
                stood(stands)
            )
        }
        What::Forgot { server } => write!(f, "server {server} FORGETS"),
        What::Restarted { server } => write!(f, "server {server} RESTARTS"),
        What::Stepped { server, micros } => {
            write!(f, "server {server} clock STEPS by {} ms", micros / 1_000)
        }
        What::Note(text) => f.write_str(text),
        other => of_queues(other, f),
    }
}

/// Who waits at servers, and what they are told.
fn of_queues(what: &What, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match what {
        What::Queue {
            server,
            key,
            waiters,
        } => {
            let waiters: Vec<_> = waiters.iter().map(short).collect();
            write!(f, "        server {server} key {key} queue: {waiters:?}")
        }
        What::LeftQueue {
            server,
            key,
            waiter,
        } => {
            let waiter = short(waiter);
            write!(f, "        server {server} key {key}: {waiter} leaves")
        }
        What::LeftFree { server, key } => {
            write!(
                f,
                "        server {server} key {key} is left free for a moment"
            )
        }
        What::Told {
            server,
            key,
            waiter,
            word,
            heard,
        } => {
            let lost = if *heard { "" } else { ", and nobody hears" };
            let waiter = short(waiter);
            write!(
                f,
                "        server {server} key {key} tells {waiter} {word:?}{lost}"
            )
        }
        other => of_the_end(other, f),
    }
}

/// How a world ends, and what is found then.
fn of_the_end(what: &What, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match what {
        What::Stuck { client } => write!(f, "client {client} DOES NOT END"),
        What::Cleared => f.write_str("-- cleared --"),
        What::Calm => f.write_str("-- calm --"),
        What::Rested => f.write_str("-- rested --"),
        What::Queued {
            server,
            key,
            waiter,
        } => {
            let waiter = short(waiter);
            write!(f, "server {server} key {key}: {waiter} is still queued")
        }
        What::Quiet => f.write_str("-- quiet --"),
        What::Settled => f.write_str("-- settled --"),
        What::Left { server, key, owner } => {
            let owner = owner.as_ref().map_or("somebody".into(), short);
            write!(f, "server {server} key {key} is still held by {owner}")
        }
        What::Probed {
            key,
            granted,
            took,
            allowed,
        } => write!(
            f,
            "probe of key {key}: granted {granted} after {took:?}, allowed {allowed:?}"
        ),
        // All others are told above.
        _ => Ok(()),
    }
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stray = if self.stray { " (stray)" } else { "" };
        write!(
            f,
            "        server {} key {}: {:?} of client {} for {}{stray}: {} -> {}",
            self.server,
            self.key,
            self.kind,
            self.client,
            short(&self.owner),
            stood(&self.before),
            stood(&self.after)
        )
    }
}

fn secs(at: Duration) -> String {
    format!("{:.3}", at.as_secs_f64())
}

/// Enough of an owner to tell it from all others of a history.
fn short(owner: &Owner) -> String {
    let text = owner.to_string();
    let nonce = text.split('.').nth(1).unwrap_or(&text);
    nonce.chars().take(6).collect()
}

fn stood(stands: &[Stand]) -> String {
    let stood = |stand: &Stand| {
        let (owner, mode) = (short(&stand.owner), unless_alone(stand.mode));
        format!("{owner}{mode} until {}", secs(stand.until))
    };
    let all: Vec<_> = stands.iter().map(stood).collect();
    if all.is_empty() {
        "free".into()
    } else {
        all.join(" & ")
    }
}

fn unless_alone(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => String::new(),
        other => format!(" ({other})"),
    }
}
