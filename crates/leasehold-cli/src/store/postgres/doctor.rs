//! Pure: what the facts of a server mean.

use std::time::Duration;

use leasehold::store::rough_span;
use leasehold::{Error, ErrorKind};
use leasehold_postgres::Examination;

use crate::output::finding::Finding;
use crate::output::report::Report;
use crate::store::checks::{self, Transport};

/// The store is made for it and later ones.
const VERSION_LEAST: (u32, u32) = (14, 0);

/// All checks of the server `store`.
pub(super) fn report(store: String, found: Result<&Examination, &Error>) -> Report {
    Report {
        store,
        majority: Some((usize::from(found.is_ok()), 1)),
        checks: found.map_or_else(of_unreachable, judge),
        members: Vec::new(),
    }
}

fn of_unreachable(error: &Error) -> Vec<Finding> {
    let remedy = match error.kind() {
        ErrorKind::Refused => "use a user, a password and a database that the server accepts",
        ErrorKind::InvalidInput | ErrorKind::Unsupported => "fix the address",
        _ => "start the server, or fix the network or the address",
    };
    vec![checks::unreachable(error, remedy)]
}

fn judge(found: &Examination) -> Vec<Finding> {
    let user = format!("answers user {:?}", found.user);
    let transport = Transport::of(found.is_encrypted, found.is_local);
    let encrypt = "set ssl = on in postgresql.conf, and add sslmode=require to the URL";
    let mut findings = vec![
        Finding::green("reachable", user),
        checks::encryption(transport, encrypt),
        checks::version(&found.version, VERSION_LEAST),
        role(found),
        encoding(found),
        schema(found),
    ];
    findings.extend(rights(found));
    findings.extend([
        session(found),
        durability(found),
        failover(found),
        connections(found),
        clock(found),
    ]);
    findings.extend(checks::round_trip(&found.round_trips));
    findings
}

fn role(found: &Examination) -> Finding {
    if found.is_standby {
        let why = "a standby accepts no writes, so it grants no locks";
        let remedy = "use the address of the primary; a URL with several hosts finds it";
        return Finding::red("role", "a standby", why, remedy);
    }
    if found.is_read_only {
        let why = "sessions of this user may not write, so the server grants no locks";
        let remedy = "use the server that accepts writes; or set default_transaction_read_only = off for the server, the database \
                      or the user";
        return Finding::red("role", "read-only", why, remedy);
    }
    Finding::green("role", "primary")
}

fn encoding(found: &Examination) -> Finding {
    if found.stores_all_names() {
        return Finding::green("encoding", &found.encoding);
    }
    let why = "names and labels with characters that this encoding lacks are refused";
    Finding::yellow(
        "encoding",
        &found.encoding,
        why,
        "use a database with the encoding UTF8",
    )
}

fn schema(found: &Examination) -> Finding {
    let (name, wanted) = (&found.schema, found.wanted_version);
    let init = "leasehold init, as a user who may create it";
    match found.schema_version {
        Some(version) if version == wanted => {
            let text = format!(
                "{name:?} has version {version}, about {} locks",
                found.locks
            );
            Finding::green("schema", text)
        }
        Some(version) if version < wanted => {
            let text = format!("{name:?} has version {version}, not {wanted}");
            Finding::red(
                "schema",
                text,
                "its functions are those of an older leasehold",
                init,
            )
        }
        Some(version) => {
            let text = format!("{name:?} has version {version}, not {wanted}");
            let why = "a newer leasehold changed it";
            Finding::red("schema", text, why, "update leasehold on this machine")
        }
        None if !found.missing_grants.is_empty() => {
            let text = format!("{name:?} may not be read");
            Finding::red(
                "schema",
                text,
                "no lock can be acquired",
                "see the check `rights`",
            )
        }
        None => {
            let text = format!("{name:?} does not exist");
            Finding::red("schema", text, "no lock can be acquired", init)
        }
    }
}

fn rights(found: &Examination) -> Option<Finding> {
    if !found.missing_grants.is_empty() {
        let text = format!("user {:?} lacks rights to the schema", found.user);
        let remedy = found.missing_grants.join("; ");
        return Some(Finding::red(
            "rights",
            text,
            "no lock can be acquired",
            remedy,
        ));
    }
    let exists = found.schema_version.is_some();
    exists.then(|| Finding::green("rights", "all that locks need"))
}

fn session(found: &Examination) -> Finding {
    if found.has_session_settings {
        return Finding::green("session", "belongs to the client");
    }
    Finding::red(
        "session",
        "shared with other clients by a connection pooler",
        "notifications and settings of the client get lost, and late statements are not bounded",
        "set pool_mode = session in the pooler, or use the address of the server itself",
    )
}

fn durability(found: &Examination) -> Finding {
    let text = format!(
        "fsync {}, synchronous_commit {}",
        if found.fsync { "on" } else { "off" },
        found.synchronous_commit
    );
    if found.fsync {
        return Finding::green("durability", text);
    }
    let why =
        "after a crash of its machine the server can grant a held lock again, and repeat a fence";
    Finding::red("durability", text, why, "set fsync = on in postgresql.conf")
}

fn failover(found: &Examination) -> Finding {
    let id = "failover";
    match (found.standbys, found.synchronous_standbys.as_str()) {
        (0, "") => Finding::green(id, "no standby follows the server"),
        (_, "") => Finding::yellow(
            id,
            format!("{} standbys, none of them synchronous", found.standbys),
            "a standby that is promoted lacks the last locks, and may grant them again",
            "set synchronous_standby_names, or fence off old holders after each failover",
        ),
        (0, names) => Finding::yellow(
            id,
            format!("synchronous_standby_names is {names:?}, and no standby follows"),
            "commits wait for a standby, so no lock is granted",
            "start the standby, or clear synchronous_standby_names",
        ),
        (_, names) => Finding::green(id, format!("synchronous standbys: {names}")),
    }
}

/// A client needs two or three.
const CONNECTIONS_MIN: i64 = 10;

fn connections(found: &Examination) -> Finding {
    let (left, most) = found.connections_left;
    let text = format!("{} of {most} are free", left.max(0));
    if left >= CONNECTIONS_MIN {
        return Finding::green("connections", text);
    }
    let why = "each client needs three, and new clients are refused";
    Finding::yellow("connections", text, why, "raise max_connections")
}

/// Leases do not depend on the clocks of clients, but fences follow them.
const CLOCK_MAX: Duration = Duration::from_secs(60);

fn clock(found: &Examination) -> Finding {
    let offset = Duration::from_micros(found.clock_offset.unsigned_abs());
    let direction = if found.clock_offset < 0 {
        "behind"
    } else {
        "ahead of"
    };
    if offset < Duration::from_secs(1) {
        return Finding::green("clock", "in sync with this machine");
    }
    let text = format!("{} {direction} this machine", rough_span(offset));
    if offset < CLOCK_MAX {
        return Finding::green("clock", text);
    }
    let why = "after a failover, a jump of the server's clock ends leases early or late";
    Finding::yellow("clock", text, why, "synchronize the clocks by NTP")
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
