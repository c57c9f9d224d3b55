//! Pure: what the facts of an etcd ensemble mean.

use std::time::Duration;

use leasehold::Error;
use leasehold::store::{MemberId, exact_span, rough_span};
use leasehold_etcd::{EtcdFacts, ServerFacts, ServerStatus};
use serde_json::{Value, json};

use crate::output::finding::Finding;
use crate::output::report::{Report, Subject};

/// A lease that must be longer makes a dead holder block for long.
const LEASE_LONG: Duration = Duration::from_secs(10);

/// A read that takes longer leaves little of a short lease.
const READ_SLOW: Duration = Duration::from_millis(100);

/// All checks of an ensemble.
pub(super) fn report(store: String, facts: &EtcdFacts) -> Report {
    let members = facts.servers.iter().map(|server| Subject {
        id: MemberId::new(server.address.clone()),
        checks: of_server(server),
        facts: numbers(server),
    });
    let answering = facts.servers.iter().any(answers);
    Report {
        store,
        majority: Some((usize::from(answering), 1)),
        checks: of_store(facts),
        members: members.collect(),
    }
}

/// Whether the server takes part. One that refuses a read for lack of rights does.
fn answers(server: &ServerFacts) -> bool {
    !matches!(&server.read, Err(error) if error.is_unreachable())
}

fn of_store(facts: &EtcdFacts) -> Vec<Finding> {
    let mut checks = vec![quorum(facts)];
    checks.extend(members(facts));
    checks.push(encryption(facts));
    checks.push(rights(facts));
    checks.extend(lease(facts));
    checks
}

fn quorum(facts: &EtcdFacts) -> Finding {
    let answering = facts.servers.iter().filter(|server| answers(server));
    match (answering.count(), facts.servers.len()) {
        (0, _) => Finding::red(
            "quorum",
            "no server answers a read on which a majority must agree",
            "no lock can be acquired or renewed",
            "start the members, or see the checks of each server below",
        ),
        (some, all) if some < all => Finding::yellow(
            "quorum",
            format!("{some} of {all} servers answer reads on which a majority must agree"),
            "clients avoid the others",
            "see the checks of each server below",
        ),
        _ => Finding::green("quorum", "a majority of the ensemble answers"),
    }
}

fn members(facts: &EtcdFacts) -> Option<Finding> {
    let members = *facts.members.as_ref().ok()?;
    let named = facts.servers.len();
    Some(match members {
        1 => Finding::yellow(
            "members",
            "the ensemble has one member",
            "no lock can be acquired while that server is down",
            "run three members on three machines",
        ),
        _ if named == 1 => Finding::yellow(
            "members",
            format!("the URL names 1 of {members} members"),
            "clients cannot move to another member when this one fails",
            "name all members in the URL: etcd://a,b,c",
        ),
        _ => Finding::green(
            "members",
            format!("the URL names {named} of {members} members"),
        ),
    })
}

fn encryption(facts: &EtcdFacts) -> Finding {
    match (facts.is_encrypted, &facts.user) {
        (true, _) => Finding::green("encryption", "the connections are encrypted"),
        (false, Some(user)) => Finding::yellow(
            "encryption",
            format!("the password of {user} is sent without encryption"),
            "everyone on the network path can read it",
            "use etcds:// and give the servers certificates",
        ),
        (false, None) => Finding::green("encryption", "none, and no password is sent"),
    }
}

fn rights(facts: &EtcdFacts) -> Finding {
    let user = facts.user.as_deref().unwrap_or("every user");
    match &facts.rights {
        Ok(()) => {
            let text = format!("{user} may read and write the keys of the locks");
            Finding::green("rights", text)
        }
        Err(error) if error.is_unreachable() => unknown("rights", error),
        Err(error) => Finding::red(
            "rights",
            error.reason(),
            "no lock can be acquired",
            facts.grant.clone(),
        ),
    }
}

fn lease(facts: &EtcdFacts) -> Option<Finding> {
    let shortest = *facts.shortest_lease.as_ref().ok()?;
    let text = format!("the shortest lease is {}", exact_span(shortest));
    Some(if shortest > LEASE_LONG {
        Finding::yellow(
            "lease",
            text,
            "the lock of a holder that died stays closed for that long, even if its TTL is shorter",
            "set a shorter --election-timeout on the members if the network allows it",
        )
    } else {
        Finding::green("lease", text)
    })
}

fn unknown(check: &'static str, error: &Error) -> Finding {
    let text = format!("unknown: {}", error.reason());
    Finding::yellow(
        check,
        text,
        "not checked",
        "run doctor again when the servers answer",
    )
}

fn of_server(server: &ServerFacts) -> Vec<Finding> {
    let status = match &server.status {
        Ok(status) => status,
        Err(error) => {
            return vec![Finding::red(
                "reachable",
                error.reason(),
                "this server takes no part in locks",
                "start it, or remove it from the URL",
            )];
        }
    };
    let mut checks = vec![
        Finding::green("reachable", "answers"),
        version(status),
        role(status),
    ];
    checks.push(read(server));
    if status.has_leader {
        // Without one, a member reports that as an error of its database.
        checks.push(database(status));
    }
    checks
}

fn version(status: &ServerStatus) -> Finding {
    let mut parts = status.version.split('.').map(str::parse::<u32>);
    let parsed = match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    };
    if parsed >= Some((3, 4)) {
        return Finding::green("version", format!("etcd {}", status.version));
    }
    Finding::red(
        "version",
        format!("etcd {}", status.version),
        "the transactions of locks need etcd 3.4 or later",
        "upgrade the server",
    )
}

fn role(status: &ServerStatus) -> Finding {
    match status {
        ServerStatus {
            is_learner: true, ..
        } => Finding::red(
            "role",
            "a learner",
            "it refuses the requests of clients",
            "promote it with `etcdctl member promote`, or remove it from the URL",
        ),
        ServerStatus {
            has_leader: false, ..
        } => Finding::red(
            "role",
            "it knows no leader",
            "it cannot take part in locks until a majority elects a leader that it reaches",
            "check the network between the members, and whether a majority runs",
        ),
        ServerStatus {
            is_leader: true, ..
        } => Finding::green("role", "the leader"),
        _ => Finding::green("role", "follows a leader"),
    }
}

fn read(server: &ServerFacts) -> Finding {
    match &server.read {
        Ok(took) if *took > READ_SLOW => Finding::yellow(
            "read",
            format!("a read took {}", rough_span(*took)),
            "each acquire takes at least two such spans",
            "check the load and the disks of the members, and the network",
        ),
        Ok(took) => Finding::green("read", format!("a read took {}", rough_span(*took))),
        // The check of the rights says what to do.
        Err(error) if !error.is_unreachable() => Finding::green("read", "refused"),
        Err(error) => Finding::red(
            "read",
            error.reason(),
            "clients avoid this server",
            "check whether it reaches the leader",
        ),
    }
}

fn database(status: &ServerStatus) -> Finding {
    let size = format!("{} MiB", status.database / (1024 * 1024));
    if status.alarms.is_empty() {
        return Finding::green("database", format!("{size}, no alarm"));
    }
    let alarms = status.alarms.join("; ");
    Finding::red(
        "database",
        format!("{size}, {alarms}"),
        "a member with an alarm refuses writes, so no lock can be acquired",
        "free space with `etcdctl compact` and `etcdctl defrag`, then run `etcdctl alarm disarm`",
    )
}

/// The facts behind the findings, as numbers for programs.
fn numbers(server: &ServerFacts) -> Value {
    let status = server.status.as_ref().ok();
    let read = server.read.as_ref().ok();
    json!({
        "version": status.map(|status| &status.version),
        "is_leader": status.map(|status| status.is_leader),
        "database_bytes": status.map(|status| status.database),
        "round_trip_us": read.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
    })
}
