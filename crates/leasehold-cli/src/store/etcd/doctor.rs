//! Pure: what the facts of an etcd ensemble mean.

use std::time::Duration;

use leasehold::member::MemberId;
use leasehold::store::exact_span;
use leasehold_etcd::{EtcdFacts, ServerFacts, ServerStatus};
use serde_json::{Value, json};

use crate::output::finding::Finding;
use crate::output::report::{Report, Subject};
use crate::store::checks::{self, Transport};

/// A lease that must be longer makes a dead holder block for long.
const LEASE_LONG: Duration = Duration::from_secs(10);

/// The transactions of locks need it.
const VERSION_LEAST: (u32, u32) = (3, 4);

/// All checks of an ensemble.
pub(super) fn report(store: String, facts: &EtcdFacts) -> Report {
    let members = facts.servers.iter().map(|server| Subject {
        id: MemberId::new(server.address.clone()),
        checks: of_server(server),
        facts: numbers(server),
    });
    let needed = facts
        .members
        .as_ref()
        .map_or(facts.servers.len(), |all| *all)
        / 2
        + 1;
    let voting = match answering(facts) {
        0 => 0,
        // A majority agreed on the answer of each, whether the URL names its servers or not.
        some => some.max(needed),
    };
    Report {
        store,
        majority: Some((voting, needed)),
        checks: of_store(facts),
        members: members.collect(),
    }
}

/// How many servers take part. One that refuses a read for lack of rights does.
fn answering(facts: &EtcdFacts) -> usize {
    let answers = |it: &&ServerFacts| !matches!(&it.read, Err(error) if error.is_unreachable());
    facts.servers.iter().filter(answers).count()
}

fn of_store(facts: &EtcdFacts) -> Vec<Finding> {
    let (answering, named) = (answering(facts), facts.servers.len());
    let mut checks = vec![checks::quorum(answering, named, answering > 0)];
    checks.extend(members(facts));
    let transport = Transport::of(facts.is_encrypted, facts.is_local);
    let remedy = "use etcds:// and give the servers certificates";
    checks.push(checks::encryption(transport, remedy));
    checks.push(rights(facts));
    checks.extend(lease(facts));
    checks
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

fn rights(facts: &EtcdFacts) -> Finding {
    let user = facts.user.as_deref().unwrap_or("every user");
    match &facts.rights {
        Ok(()) => {
            let text = format!("{user} may read and write the keys of the locks");
            Finding::green("rights", text)
        }
        Err(error) if error.is_unreachable() => {
            checks::unknown("rights", error, "run doctor again when the servers answer")
        }
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

fn of_server(server: &ServerFacts) -> Vec<Finding> {
    let status = match &server.status {
        Ok(status) => status,
        Err(error) => {
            return vec![checks::unreachable(
                error,
                "start it, or remove it from the URL",
            )];
        }
    };
    let mut checks = vec![
        Finding::green("reachable", "answers"),
        checks::version(&status.version, VERSION_LEAST),
        role(status),
    ];
    checks.extend(read(server));
    if status.has_leader {
        // Without one, a member reports that as an error of its database.
        checks.push(database(status));
    }
    checks
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

/// A read on which a majority must agree.
fn read(server: &ServerFacts) -> Option<Finding> {
    match &server.read {
        Ok(took) => checks::round_trip(&[*took]),
        // The check of the rights says what to do.
        Err(error) if !error.is_unreachable() => None,
        Err(error) => Some(Finding::red(
            "read",
            error.reason(),
            "clients avoid this server",
            "check whether it reaches the leader",
        )),
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
