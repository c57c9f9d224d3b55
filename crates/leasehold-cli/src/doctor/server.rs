//! Pure: what the facts of one server mean, whatever the others are.

use std::time::Duration;

use leasehold::{Error, ErrorKind};
use leasehold_redis::{Examination, KeyCensus, Need, Persistence, ServerFacts, Transport};

use super::finding::Finding;
use crate::shortage::whole_seconds;

/// What the findings of one server rest on, beside its facts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Whether it is one of three or more.
    pub(super) is_set: bool,
    /// How long it does not count after a restart in which it may have forgotten locks.
    pub(super) penalty: Duration,
}

/// The checks of a server that nobody could look at.
pub(super) fn of_unreachable(error: &Error) -> Vec<Finding> {
    let remedy = match error.kind() {
        ErrorKind::Refused => "give the user and password that the server knows, or mend its ACL",
        ErrorKind::InvalidInput | ErrorKind::Unsupported => "mend the address, or what it names",
        ErrorKind::Garbled => "give the address of a Redis or Valkey server",
        _ => {
            "start the server, or let this machine reach it; if it is gone for good: leasehold members remove"
        }
    };
    let why = "a server that cannot be asked grants nothing";
    vec![Finding::red("reachable", error.reason(), why, remedy)]
}

/// The checks of a server that was looked at.
pub(super) fn judge(found: &Examination, place: Place) -> Vec<Finding> {
    let mut findings = vec![
        Finding::green("reachable", format!("answers to the user {:?}", found.user)),
        encryption(found.transport),
    ];
    match &found.server {
        Ok(facts) => findings.extend([version(facts), role(facts), eviction(facts)]),
        Err(error) => findings.push(hidden("version", error)),
    }
    findings.push(writes(found.refuses_locks.as_deref()));
    findings.push(match &found.persistence {
        Ok(kept) => persistence(kept, found, place),
        Err(error) => hidden("persistence", error),
    });
    findings.push(rights(found, place));
    findings.push(push(found.speaks_resp3));
    findings.push(match &found.keys {
        Ok(keys) => self::keys(keys, &found.prefix),
        Err(error) => hidden("keys", error),
    });
    findings.extend(round_trip(&found.round_trips));
    findings
}

/// What the user may not ask for is not known, which is no fault of the server.
fn hidden(check: &'static str, error: &Error) -> Finding {
    let found = format!("unknown: {}", error.reason());
    let remedy = match error.kind() {
        ErrorKind::Refused => "see the check `rights`",
        // A managed server may have no CONFIG at all.
        _ => "ask who runs the server",
    };
    Finding::yellow(check, found, "nobody looked", remedy)
}

fn encryption(transport: Transport) -> Finding {
    let id = "encryption";
    match transport {
        Transport::ThisMachine => Finding::green(id, "the connection does not leave this machine"),
        Transport::Tls => Finding::green(id, "TLS"),
        Transport::PlainNetwork => Finding::yellow(
            id,
            "none",
            "whoever is on the way reads the password and can take locks",
            "tls-port 6380 in redis.conf, and rediss://host:6380 as the address",
        ),
    }
}

fn version(facts: &ServerFacts) -> Finding {
    let ServerFacts { version, .. } = facts;
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    let number: (u32, u32) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let id = "version";
    if number < (6, 2) {
        let why = "locks need commands that came with Redis 6.2";
        return Finding::red(id, version, why, "update the server to Redis 7 or Valkey");
    }
    if number < (7, 0) {
        let why = "a free lock is taken by a script, which costs the server twice as much";
        return Finding::yellow(id, version, why, "update the server to Redis 7 or Valkey");
    }
    Finding::green(id, version)
}

fn role(facts: &ServerFacts) -> Finding {
    if !facts.is_primary {
        let why =
            "it grants nothing: it may lag behind its primary, or forget what that one granted";
        let remedy = "REPLICAOF NO ONE, or take the primary's address";
        return Finding::red("role", "a replica", why, remedy);
    }
    if facts.is_cluster_node {
        let why = "its fail-over forgets locks; the servers of a store are independent";
        let remedy = "cluster-enabled no in redis.conf, or a server of its own for locks";
        return Finding::red("role", "a node of a Redis Cluster", why, remedy);
    }
    Finding::green("role", "primary")
}

fn eviction(facts: &ServerFacts) -> Finding {
    let ServerFacts {
        max_memory,
        eviction_policy,
        ..
    } = facts;
    let found = format!("maxmemory {max_memory}, maxmemory-policy {eviction_policy}");
    if *max_memory == 0 || eviction_policy == "noeviction" {
        return Finding::green("eviction", found);
    }
    let why = "when its memory is full it throws locks away while they are held";
    Finding::red(
        "eviction",
        found,
        why,
        "CONFIG SET maxmemory-policy noeviction",
    )
}

fn writes(refused: Option<&str>) -> Finding {
    match refused {
        None => Finding::green("writes", "are taken"),
        Some(text) => {
            let remedy = match text.split(' ').next() {
                Some("OOM") => "CONFIG SET maxmemory to more than it uses, or remove data",
                Some("MISCONF") => "mend what its log says of the disk",
                Some("READONLY") => "REPLICAOF NO ONE, or take the primary's address",
                _ if text.contains("unknown command") => "no rename-command in redis.conf for it",
                _ => "mend what it says",
            };
            Finding::red(
                "writes",
                text,
                "no lock is granted, and none renewed",
                remedy,
            )
        }
    }
}

fn persistence(kept: &Persistence, found: &Examination, place: Place) -> Finding {
    let Persistence {
        append_only,
        append_fsync,
        no_fsync_on_rewrite,
        last_write_was_ok,
        replicas,
    } = kept;
    let was_replica = found.presence.as_ref().is_ok_and(|it| it.was_replica);
    let settings = [
        ("appendonly", append_only, "yes"),
        ("appendfsync", append_fsync, "always"),
        ("no-appendfsync-on-rewrite", no_fsync_on_rewrite, "no"),
    ];
    let is = settings.map(|(name, is, _)| format!("{name} {is}"));
    let is = is.join(", ");
    let durable = match &found.presence {
        Ok(presence) => presence.will_remember(),
        Err(_) => {
            let as_wanted = settings.iter().all(|(_, is, wanted)| is == wanted);
            *last_write_was_ok && as_wanted && *replicas == 0
        }
    };
    if durable {
        return Finding::green("persistence", format!("{is}: a restart forgets nothing"));
    }
    if !last_write_was_ok {
        let text = format!("{is}, but the last write to the file failed");
        let why = "a restart may forget locks";
        return Finding::yellow(
            "persistence",
            text,
            why,
            "mend what its log says of the disk",
        );
    }
    let why = if place.is_set {
        let penalty = whole_seconds(place.penalty);
        format!("a restart may forget locks, so it costs this server {penalty} without a vote")
    } else {
        "a restart forgets locks, and they are granted twice".to_owned()
    };
    let differing = settings.iter().filter(|(_, is, wanted)| is != wanted);
    let remedy = differing.map(|(name, _, wanted)| format!("CONFIG SET {name} {wanted}"));
    let mut remedy: Vec<String> = remedy.collect();
    let text = match (remedy.is_empty(), *replicas, was_replica) {
        (false, ..) => {
            remedy.push("CONFIG REWRITE".into());
            is
        }
        (true, 1.., _) => {
            remedy.push("REPLICAOF NO ONE at each replica".into());
            format!("{is}, but a replica that lags behind may take its place ({replicas})")
        }
        (true, 0, true) => format!("{is}, but it was a replica in this run"),
        (true, 0, false) => format!("{is}, but not since it started"),
    };
    if place.is_set || remedy.is_empty() {
        // What its card says holds for as long as it runs.
        remedy.push("restart it: it is durable from then on".into());
    }
    Finding::yellow("persistence", text, why, remedy.join("; "))
}

fn rights(found: &Examination, place: Place) -> Finding {
    let missing = &found.missing_rights;
    let Some(worst) = missing.iter().map(|right| right.need).min() else {
        return Finding::green("rights", "all that locks need");
    };
    let rules: Vec<&str> = missing.iter().map(|right| right.rule.as_str()).collect();
    let rules = rules.join(" ");
    let text = format!("the user {:?} lacks {rules}", found.user);
    let remedy = format!("ACL SETUSER {} {rules}", found.user);
    match worst {
        Need::Locks => Finding::red(
            "rights",
            text,
            "locks cannot be taken and given back",
            remedy,
        ),
        Need::Sets if place.is_set => {
            let why = "its card cannot be kept, and without one it does not count";
            Finding::red("rights", text, why, remedy)
        }
        Need::Sets => Finding::yellow(
            "rights",
            text,
            "no permits, no elections, no results of `once`; nobody sees who holds a lock",
            remedy,
        ),
        Need::Waking => {
            let why = "waiters are not told of their turn, and ask every second or two";
            Finding::yellow("rights", text, why, remedy)
        }
        Need::Looking => {
            let why = "locks cannot be listed, nor the type of a foreign one be named";
            Finding::yellow("rights", text, why, remedy)
        }
        Need::Durability => {
            let why = "nobody knows whether it is durable, so it counts as if it were not";
            Finding::yellow("rights", text, why, remedy)
        }
    }
}

fn push(speaks_resp3: bool) -> Finding {
    if speaks_resp3 {
        return Finding::green("push", "RESP3: waiters are told of their turn");
    }
    let why = "waiters are not told of their turn, and ask every second or two";
    let remedy = "let clients speak to the server itself, or through a proxy that knows HELLO 3";
    Finding::yellow("push", "no RESP3", why, remedy)
}

fn keys(keys: &KeyCensus, prefix: &str) -> Finding {
    let among = match (keys.is_complete, keys.seen) {
        (true, 0) => "no keys".to_owned(),
        (true, 1) => "the only key".to_owned(),
        (true, seen) => format!("all {seen} keys"),
        (false, 1) => "1 key of more".to_owned(),
        (false, seen) => format!("{seen} keys of more"),
    };
    if let Some((key, kind)) = keys.damaged.first() {
        let text = format!("{key:?} is a {kind}, which this library does not write");
        let why = "the lock it belongs to cannot be used";
        return Finding::red("keys", text, why, format!("DEL {key:?}"));
    }
    if let Some((key, form)) = keys.endless.first() {
        let more = match keys.endless.len() {
            1 => String::new(),
            count => format!(", and {} more such keys", count - 1),
        };
        let text =
            format!("{key:?} never expires, and this library did not write it: {form}{more}");
        let why = "the lock of this name is not granted until the key is deleted";
        let remedy = format!("DEL {key:?} once its program is gone, or give the lock another name");
        return Finding::yellow("keys", text, why, remedy);
    }
    if keys.foreign.is_empty() {
        let strings = match keys.strings {
            0 => "none is a string".to_owned(),
            1 => "1 is a string".to_owned(),
            strings => format!("{strings} are strings"),
        };
        let found = format!("none of a foreign kind, in {among}; {strings}, as locks are");
        return Finding::green("keys", found);
    }
    let kinds = keys
        .foreign
        .iter()
        .map(|(kind, (count, name))| match (count, &**kind) {
            (1, "hash") => format!("the hash {name:?} (Redisson's locks are hashes)"),
            (1, _) => format!("the {kind} {name:?}"),
            (_, "hash") => {
                format!("{count} of type hash, as {name:?} (Redisson's locks are hashes)")
            }
            _ => format!("{count} of type {kind}, as {name:?}"),
        });
    let text = format!("{}, in {among}", kinds.collect::<Vec<_>>().join("; "));
    let why = "a lock of such a name is refused; if they are locks, they do not exclude ours";
    let remedy = if prefix.is_empty() {
        "?prefix=locks: in the address of every client, unless the names cannot meet"
    } else {
        "another ?prefix= in the address of every client, unless the names cannot meet"
    };
    Finding::yellow("keys", text, why, remedy)
}

/// From which on the least limit of a member is too short, and short TTLs are out of reach.
const SLOW: Duration = Duration::from_millis(50);

fn round_trip(sorted: &[Duration]) -> Option<Finding> {
    let (median, longest) = (*sorted.get(sorted.len() / 2)?, *sorted.last()?);
    let text = format!("{median:.1?}, at most {longest:.1?} of {}", sorted.len());
    if median <= SLOW {
        return Some(Finding::green("round_trip", text));
    }
    let why = format!(
        "one of several servers is waited for for a twentieth of the TTL: below {:.0?} it counts as silent",
        median * 20
    );
    let remedy = "run clients nearer to it, or take longer TTLs; leasehold bench says more";
    Some(Finding::yellow("round_trip", text, why, remedy))
}
