//! Pure: what the facts of the servers mean together.

use std::time::Duration;

use leasehold::member::{MemberId, MemberRecord};
use leasehold::store::{exact_span, rough_span};

use super::restart;
use super::server::{self, MemberContext};
use super::snapshot::{NoVote, Server, Snapshot};
use crate::output::finding::{Finding, Verdict};
use crate::output::quorum_shortfall::{NOT_INITIALIZED, once_remedy};
use crate::output::time_text::whole_seconds;

/// A day. A client whose clock is off by more proposes fences that are refused.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// A larger offset of the clock of this machine is reported, in microseconds.
const OFF: i64 = 1_000_000;

/// A smaller offset is not worth a number, and is near what can be measured, in microseconds.
const IN_SYNC: i64 = 10_000;

/// The checks of the store as a whole.
pub(super) fn of_store(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = vec![members(snapshot), quorum(snapshot)];
    findings.extend(generation(snapshot));
    findings.extend(once(snapshot));
    findings.extend(own_clock(snapshot));
    findings
}

/// All checks of the server in this index.
pub(super) fn of_server(snapshot: &Snapshot, index: usize) -> Vec<Finding> {
    let server = &snapshot.servers[index];
    let mut findings = match &server.found {
        Err(error) => return server::of_unreachable(&server.id, snapshot.is_quorum(), error),
        Ok(found) => {
            let penalty = snapshot.penalty();
            let is_quorum = snapshot.is_quorum();
            server::judge(found, MemberContext { is_quorum, penalty })
        }
    };
    findings.extend(clock(snapshot, server));
    findings.extend(same_server(snapshot, index));
    findings.extend(member_record(snapshot, index));
    if !snapshot.is_uninitialized {
        // Before initialization, no server has a vote to lose.
        findings.push(vote(server, &findings));
        findings.extend(restart::restart(snapshot, index));
    }
    findings
}

fn members(snapshot: &Snapshot) -> Finding {
    let count = snapshot.servers.len();
    let three = "use three or five independent servers, then leasehold init";
    match count {
        1 => {
            let why = "if it fails over or loses its data, a lock can be granted twice";
            Finding::yellow("members", "one server", why, three)
        }
        2 => {
            let why = "if one fails, no lock can be acquired; restarts and clocks are not checked";
            Finding::yellow("members", "two servers", why, three)
        }
        _ if count.is_multiple_of(2) => {
            let why = format!(
                "{} may fail, the same as with {} servers",
                (count - 1) / 2,
                count - 1
            );
            let remedy =
                "add or remove one server: leasehold members add, leasehold members remove";
            Finding::yellow("members", format!("{count} servers"), why, remedy)
        }
        _ => {
            let may_fail = (count - 1) / 2;
            Finding::green("members", format!("{count} servers; {may_fail} may fail"))
        }
    }
}

fn quorum(snapshot: &Snapshot) -> Finding {
    let (counting, needed) = (snapshot.voting(), snapshot.needed());
    let text = format!(
        "{counting} of {} servers have a vote, {needed} needed",
        snapshot.servers.len()
    );
    if counting >= needed {
        return Finding::green("quorum", text);
    }
    let why = "no lock is granted or renewed";
    if snapshot.is_uninitialized {
        return Finding::red(
            "quorum",
            format!("{text}: {NOT_INITIALIZED}"),
            why,
            "leasehold init",
        );
    }
    let remedy = match enough_again(snapshot) {
        Some(again) => format!("wait {}", whole_seconds(again)),
        None => "fix what is red below".into(),
    };
    Finding::red("quorum", text, why, remedy)
}

/// When a majority has a vote, if only time is missing.
fn enough_again(snapshot: &Snapshot) -> Option<Duration> {
    let outs = snapshot.servers.iter().filter_map(|it| it.out.as_ref());
    let mut spans: Vec<Duration> = outs.filter_map(|out| out.again).collect();
    spans.sort_unstable();
    let lacking = snapshot.needed().checked_sub(snapshot.voting() + 1)?;
    spans.get(lacking).copied()
}

fn generation(snapshot: &Snapshot) -> Option<Finding> {
    let member_records = snapshot
        .servers
        .iter()
        .filter_map(|it| Some((&it.id, it.member_record()?)));
    let mut known: Vec<(u64, &MemberId)> = member_records
        .map(|(id, member_record)| (member_record.configuration(), id))
        .collect();
    known.sort_unstable();
    let ((least, behind), (most, ahead)) = (known.first()?, known.last()?);
    if !snapshot.is_quorum() || snapshot.is_uninitialized {
        return None;
    }
    if least == most {
        return Some(Finding::green(
            "generation",
            format!("{most} on all servers"),
        ));
    }
    let text = format!("{least} on {behind}, {most} on {ahead}");
    let why =
        "a change of members was interrupted; some servers refuse the old list, others the new one";
    let remedy = "repeat the last leasehold members add or remove";
    Some(Finding::yellow("generation", text, why, remedy))
}

/// Whether `once` runs commands. Locks do not need it, so it is never red.
fn once(snapshot: &Snapshot) -> Option<Finding> {
    let answering = snapshot.servers.iter().filter(|it| it.found.is_ok());
    // If too few answer, that is the cause, and `quorum` says so.
    let is_known = answering.count() >= snapshot.needed();
    if !snapshot.is_quorum() || snapshot.is_uninitialized || !is_known {
        return None;
    }
    let finding = match snapshot.requests_in {
        Some(Duration::ZERO) => Finding::green("once", "possible"),
        Some(span) => Finding::yellow(
            "once",
            format!("possible in {}", whole_seconds(span)),
            "too few servers remember the last day, so they cannot deny that a command has run",
            once_remedy(snapshot.servers.iter().filter_map(Server::status)).unwrap_or("wait"),
        ),
        None => Finding::yellow(
            "once",
            "not possible",
            "too few servers that answer are durable, so a result could get lost",
            "make a majority of the servers durable if you use once",
        ),
    };
    Some(finding)
}

fn own_clock(snapshot: &Snapshot) -> Option<Finding> {
    let off = snapshot.median()?.saturating_neg();
    let whose = if snapshot.servers.len() == 1 {
        "the server"
    } else {
        "the servers"
    };
    let text = if off.abs() < IN_SYNC {
        format!("in sync with {whose}")
    } else {
        format!("this machine's clock is {} {whose}", relative(off))
    };
    if off.abs() >= DAY {
        let why = "a client whose clock is a day off cannot acquire locks";
        return Some(Finding::red(
            "own_clock",
            text,
            why,
            "synchronize the clocks with chrony or ntpd",
        ));
    }
    if off.abs() > OFF {
        let why = "after a server loses its counters, the order of fences depends on the clocks of the clients";
        return Some(Finding::yellow(
            "own_clock",
            text,
            why,
            "synchronize the clocks with chrony or ntpd",
        ));
    }
    Some(Finding::green("own_clock", text))
}

fn relative(micros: i64) -> String {
    let span = Duration::from_micros(micros.unsigned_abs());
    let word = if micros < 0 { "behind" } else { "ahead of" };
    format!("{} {word}", rough_span(span))
}

fn clock(snapshot: &Snapshot, server: &Server) -> Option<Finding> {
    if !snapshot.is_quorum() {
        return None;
    }
    let off = snapshot.clock_off(server)?;
    let span = Duration::from_micros(off.unsigned_abs());
    let tolerance = snapshot.set.clock_tolerance;
    let allowed = exact_span(tolerance);
    let text = if off.abs() < IN_SYNC {
        "in sync".into()
    } else {
        format!(
            "{} the servers' median (tolerance {allowed})",
            relative(off)
        )
    };
    let remedy = "synchronize its clock with chrony or ntpd";
    if snapshot.has_wrong_clock(server) {
        let text = format!(
            "{} the servers' median; the tolerance is {allowed}",
            relative(off)
        );
        let why = "with this clock it has no vote";
        return Some(Finding::red("clock", text, why, remedy));
    }
    if span > tolerance / 2 {
        let why = "beyond the tolerance it has no vote";
        return Some(Finding::yellow("clock", text, why, remedy));
    }
    Some(Finding::green("clock", text))
}

fn same_server(snapshot: &Snapshot, index: usize) -> Option<Finding> {
    if snapshot.servers.len() == 1 {
        return None;
    }
    let run = &snapshot.servers[index].status()?.run;
    let others = snapshot.servers.iter().enumerate();
    let duplicate = others
        .filter(|(other, _)| *other != index)
        .find(|(_, other)| other.status().is_some_and(|it| it.run == *run));
    Some(match duplicate {
        None => Finding::green("same_server", "no other address leads to the same server"),
        Some((_, duplicate)) => Finding::red(
            "same_server",
            format!("is the same server as {}", duplicate.id),
            "two addresses of one server fail together, so they must not both vote",
            "list each server once; behind a proxy or NAT, use the servers' own addresses",
        ),
    })
}

fn member_record(snapshot: &Snapshot, index: usize) -> Option<Finding> {
    let server = &snapshot.servers[index];
    let status = server.status()?;
    match (&status.member_record, snapshot.is_quorum()) {
        (None, false) => None,
        // `rights` says so.
        (None, true) if server.hides_its_record() => None,
        (Some(record), false) if record.is_formed() => {
            let text = format!("belongs to the quorum {}", record.set);
            let why =
                "a client that uses it alone does not see the locks of the quorum, and is refused";
            Some(Finding::red(
                "record",
                text,
                why,
                "list all servers of the quorum; if that no longer exists: DEL leasehold:member_record",
            ))
        }
        (Some(_), false) => None,
        (None, true) if snapshot.is_uninitialized => Some(Finding::yellow(
            "record",
            "none",
            "the quorum is not initialized",
            "leasehold init",
        )),
        (None, true) => Some(Finding::yellow(
            "record",
            "none, although others have one",
            "it lost its data, or was never a member of the quorum",
            if snapshot.can_restore() {
                "none needed: the next client that acquires a lock writes one".to_owned()
            } else {
                format!(
                    "start the servers that do not answer; if they cannot come back: leasehold \
                     members readmit {}",
                    server.id.as_str()
                )
            },
        )),
        (Some(record), true) if record.set == snapshot.set => {
            let wrong = claimed(snapshot, index, record.configuration())
                .or_else(|| replaced(snapshot, index, record));
            if let Some(wrong) = wrong {
                return Some(wrong);
            }
            let text = format!("generation {} of {}", record.configuration(), record.set);
            Some(Finding::green("record", text))
        }
        (Some(record), true) => Some(Finding::red(
            "record",
            format!(
                "the server says (generation {}): {}",
                record.configuration(),
                record.set
            ),
            format!(
                "this client is configured with {}, and is refused",
                snapshot.set
            ),
            "configure all clients as the server says; leasehold members changes the list",
        )),
    }
}

/// Whether the record of another server says that this one belongs to another quorum.
fn claimed(snapshot: &Snapshot, index: usize, generation: u64) -> Option<Finding> {
    let id = &snapshot.servers[index].id;
    let others = snapshot.servers.iter().enumerate();
    let mut others = others.filter(|(other, _)| *other != index);
    let (by, theirs) = others.find_map(|(_, other)| {
        let theirs = other.member_record()?;
        let claims = theirs.claims(id, &snapshot.set, generation);
        claims.then_some((&other.id, theirs))
    })?;
    Some(Finding::red(
        "record",
        format!(
            "belongs to two quorums: its own record (generation {generation}) names this one, the \
             record of {by} (generation {}) names {}",
            theirs.configuration(),
            theirs.set
        ),
        "both could grant the same lock, so it has a vote in neither",
        format!(
            "stop the clients of the wrong quorum; if that is the one of {by}, run DEL leasehold:member_record there"
        ),
    ))
}

/// Whether another server knows a later one under the id of this one.
fn replaced(snapshot: &Snapshot, index: usize, record: &MemberRecord) -> Option<Finding> {
    let id = &snapshot.servers[index].id;
    let others = snapshot.servers.iter().enumerate();
    let mut others = others.filter(|(other, _)| *other != index);
    let (_, by) = others.find(|(_, other)| {
        let theirs = other.member_record();
        theirs.is_some_and(|theirs| record.was_replaced_according_to(theirs, id))
    })?;
    Some(Finding::red(
        "record",
        format!("{} knows a later server with the id {}", by.id, id.as_str()),
        "the server that joined last is the member, and this one has no vote",
        format!(
            "use the list with the later server; if this one is the right one: leasehold members readmit {}",
            id.as_str()
        ),
    ))
}

fn vote(server: &Server, others: &[Finding]) -> Finding {
    let Some(NoVote { why, again }) = &server.out else {
        return Finding::green("vote", "has a vote");
    };
    match again {
        Some(again) => {
            let text = format!("no vote for {}: {why}", whole_seconds(*again));
            Finding::yellow(
                "vote",
                text,
                "fewer other servers may fail until then",
                "wait",
            )
        }
        None if server.found.as_ref().is_ok_and(|it| it.status.is_err()) => {
            let text = format!("no vote: {why}");
            Finding::red("vote", text, "it grants no locks", "fix the error")
        }
        None if others.iter().any(|it| it.verdict == Verdict::Red) => Finding::red(
            "vote",
            format!("no vote: {why}"),
            "it grants no locks",
            "fix what is red above",
        ),
        None => {
            let text = format!("no vote yet: {why}");
            let remedy =
                "none needed: once clients use it, they write its record, and it gets a vote later";
            Finding::yellow(
                "vote",
                text,
                "fewer other servers may fail until then",
                remedy,
            )
        }
    }
}
