//! Pure: what the facts about an ensemble mean.

use std::time::Duration;

use leasehold::Error;
use leasehold::member::MemberId;
use leasehold::store::exact_span;
use leasehold_zookeeper::{Examination, ServerFacts, SessionFacts};
use serde_json::json;

use crate::output::finding::Finding;
use crate::output::report::{Report, Subject};
use crate::store::checks::{self, Transport};

/// The TTL of a lock that names none.
const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// The oldest tested version.
const VERSION_LEAST: (u32, u32) = (3, 8);

/// All checks of an ensemble, which `store` describes.
pub(super) fn report(store: String, found: &Examination) -> Report {
    let (working, count) = (working(found), found.servers.len());
    let needed = count / 2 + 1;
    let mut checks = vec![
        checks::quorum(working, count, working >= needed),
        members(found),
    ];
    checks.extend(versions(found));
    let transport = Transport::of(found.is_encrypted, found.is_local);
    let remedy = "set secureClientPort on the servers, and use zks:// and a login";
    checks.push(checks::encryption(transport, remedy));
    match &found.session {
        Ok(session) => checks.extend([timeout(session), root(found, session), rights(session)]),
        Err(error) => checks.push(Finding::red(
            "session",
            error.reason(),
            "no lock can be acquired",
            "see the findings of the servers; a working ensemble has a leader and a majority",
        )),
    }
    let members = found.servers.iter().map(|(id, facts)| Subject {
        id: MemberId::new(id.clone()),
        checks: server(facts),
        facts: json!({
            "version": facts.as_ref().ok().and_then(|facts| facts.version.as_ref()),
            "mode": facts.as_ref().ok().and_then(|facts| facts.mode.as_ref()),
            "round_trip_us": facts.as_ref().ok().and_then(|facts| u64::try_from(facts.took.as_micros()).ok()),
        }),
    });
    Report {
        store,
        majority: Some((working, needed)),
        checks,
        members: members.collect(),
    }
}

fn modes(found: &Examination) -> Vec<&str> {
    let facts = found
        .servers
        .iter()
        .filter_map(|(_, facts)| facts.as_ref().ok());
    facts.filter_map(|facts| facts.mode.as_deref()).collect()
}

fn working(found: &Examination) -> usize {
    let works = found.servers.iter().filter(|(_, facts)| facts.is_ok());
    works.count()
}

fn members(found: &Examination) -> Finding {
    let (count, modes) = (found.servers.len(), modes(found));
    let leaders = modes.iter().filter(|mode| **mode == "leader").count();
    if modes.contains(&"standalone") && count > 1 {
        return Finding::red(
            "members",
            "a server of several is standalone: it grants locks of its own",
            "two clients can hold one lock at the same time",
            "list all servers in the zoo.cfg of each (server.1=..), and restart them",
        );
    }
    if leaders > 1 {
        return Finding::red(
            "members",
            format!("{leaders} servers say that they lead"),
            "they belong to different ensembles, so two clients can hold one lock, unless an election is under way",
            "run `leasehold doctor` again; then compare the server lines of zoo.cfg",
        );
    }
    if (count, modes.as_slice()) == (1, &["standalone"]) {
        return Finding::yellow(
            "members",
            "one standalone server",
            "while it is down, no lock can be acquired or renewed",
            "use an ensemble of three or five servers",
        );
    }
    Finding::green(
        "members",
        format!("the URL names {count} servers of one ensemble"),
    )
}

fn versions(found: &Examination) -> Option<Finding> {
    let facts = found
        .servers
        .iter()
        .filter_map(|(_, facts)| facts.as_ref().ok());
    let mut versions: Vec<&str> = facts.filter_map(|facts| facts.version.as_deref()).collect();
    versions.sort_unstable();
    versions.dedup();
    match versions.as_slice() {
        [] => None,
        [one] => Some(Finding::green("versions", *one)),
        several => Some(Finding::yellow(
            "versions",
            several.join(", "),
            "servers of one ensemble should differ only during an upgrade",
            "upgrade the older ones",
        )),
    }
}

fn timeout(session: &SessionFacts) -> Finding {
    let (shortest, longest) = (session.shortest, session.longest);
    let limits = format!("{} to {}", exact_span(shortest), exact_span(longest));
    let (wanted, by) = match session.asked {
        Some(asked) => (asked, "the URL asks for"),
        None => (DEFAULT_TTL, "the default TTL is"),
    };
    if wanted < shortest || wanted > longest {
        let granted = exact_span(wanted.clamp(shortest, longest));
        let wanted = exact_span(wanted);
        return Finding::yellow(
            "timeout",
            format!("sessions of {limits}; {by} {wanted}"),
            format!("a dead holder blocks its locks for {granted}, even with a shorter TTL"),
            "set minSessionTimeout and maxSessionTimeout in zoo.cfg, or timeout=.. in the URL",
        );
    }
    let wanted = exact_span(wanted);
    Finding::green("timeout", format!("sessions of {limits}; {by} {wanted}"))
}

fn root(found: &Examination, session: &SessionFacts) -> Finding {
    let root = &found.root;
    match session.root_exists {
        true => Finding::green("root", format!("{root} exists")),
        false => Finding::green(
            "root",
            format!("{root} does not exist; the first lock creates it"),
        ),
    }
}

fn rights(session: &SessionFacts) -> Finding {
    match &session.missing_right {
        None => Finding::green("rights", "read, write, create and delete"),
        Some((node, command)) => Finding::red(
            "rights",
            format!("the login may not read, write, create and delete at {node}"),
            "no lock can be acquired",
            format!("in zkCli.sh: {command}"),
        ),
    }
}

fn server(facts: &Result<ServerFacts, Error>) -> Vec<Finding> {
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => {
            let remedy = "start it, or see its log; check the host, the port and the firewall";
            return vec![checks::unreachable(error, remedy)];
        }
    };
    let mode = match &facts.mode {
        Some(mode) => Finding::green("role", mode),
        None => Finding::yellow(
            "role",
            "serves clients; it does not say whether it leads",
            "the version and the mode of the server cannot be checked",
            "add srvr to 4lw.commands.whitelist in zoo.cfg",
        ),
    };
    let mut findings = vec![mode];
    findings.extend(checks::round_trip(&[facts.took]));
    let version = facts.version.as_deref();
    findings.extend(version.map(|version| checks::version(version, VERSION_LEAST)));
    findings
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
