//! Pure: what the facts of one server mean, without the other servers.

use std::time::Duration;

use leasehold::member::MemberId;
use leasehold::{Error, ErrorKind};
use leasehold_redis::{Examination, KeyCensus, Need, Persistence, ServerFacts};

use crate::output::finding::Finding;
use crate::output::time_text::whole_seconds;
use crate::store::checks::{self, Transport};

/// What the checks of a server need to know about its store.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberContext {
    /// Whether it is one of three or more.
    pub(super) is_quorum: bool,
    /// How long it has no vote after a restart that may have lost locks.
    pub(super) penalty: Duration,
}

/// The checks of a server that could not be examined.
pub(super) fn of_unreachable(id: &MemberId, is_quorum: bool, error: &Error) -> Vec<Finding> {
    let remedy = match error.kind() {
        ErrorKind::Refused => {
            "use a user and password that the server accepts, or fix its ACL".to_owned()
        }
        ErrorKind::InvalidInput | ErrorKind::Unsupported => "fix the address".to_owned(),
        ErrorKind::InvalidResponse => "use the address of a Redis or Valkey server".to_owned(),
        _ => {
            let address = id.address();
            let further = match is_quorum {
                true => "if it is gone for good: leasehold members replace",
                false => "its log says why it ended, for example that its disk is full",
            };
            format!("start the server at {address}, or fix the network; {further}")
        }
    };
    vec![checks::unreachable(error, remedy)]
}

/// The checks of a server that was examined.
pub(super) fn judge(found: &Examination, context: MemberContext) -> Vec<Finding> {
    let mut findings = vec![
        Finding::green("reachable", format!("answers user {:?}", found.user)),
        encryption(found.transport),
    ];
    match &found.server {
        Ok(facts) => findings.extend([
            version(facts),
            role(facts),
            eviction(facts, found.accepts_eviction),
        ]),
        Err(error) => findings.push(hidden("version", error)),
    }
    findings.push(writes(found.refuses_locks.as_deref()));
    findings.push(match &found.persistence {
        Ok(kept) => persistence(kept, found, context),
        Err(error) => hidden("persistence", error),
    });
    findings.push(rights(found, context));
    findings.push(push(found.speaks_resp3));
    findings.push(match &found.keys {
        Ok(keys) => self::keys(keys, &found.prefix),
        Err(error) => hidden("keys", error),
    });
    findings.extend(checks::round_trip(&found.round_trips));
    findings
}

/// A fact that the user may not read.
fn hidden(check: &'static str, error: &Error) -> Finding {
    let remedy = match error.kind() {
        ErrorKind::Refused => "see the check `rights`",
        // A managed server may have no CONFIG at all.
        _ => "ask the operator of the server",
    };
    checks::unknown(check, error, remedy)
}

fn encryption(transport: leasehold_redis::Transport) -> Finding {
    let transport = match transport {
        leasehold_redis::Transport::ThisMachine => Transport::ThisMachine,
        leasehold_redis::Transport::Tls => Transport::Tls,
        leasehold_redis::Transport::PlainNetwork => Transport::PlainNetwork,
    };
    let remedy = "set tls-port 6380 in redis.conf, and use rediss://host:6380";
    checks::encryption(transport, remedy)
}

fn version(facts: &ServerFacts) -> Finding {
    let version = &facts.version;
    if ((6, 2)..(7, 0)).contains(&checks::numbers(version)) {
        let why = "acquiring a free lock needs a script here, at twice the cost for the server";
        let remedy = "update the server to Redis 7 or Valkey";
        return Finding::yellow("version", version, why, remedy);
    }
    checks::version(version, (6, 2))
}

fn role(facts: &ServerFacts) -> Finding {
    if !facts.is_primary {
        let why = "a replica grants no locks: it may lag behind its primary and miss locks";
        let remedy = "use the address of the primary, or REPLICAOF NO ONE";
        return Finding::red("role", "a replica", why, remedy);
    }
    if facts.is_cluster_node {
        let why = "its fail-over forgets locks; the servers of a quorum must be independent";
        let remedy = "set cluster-enabled no in redis.conf, or use a separate server for locks";
        return Finding::red("role", "a node of a Redis Cluster", why, remedy);
    }
    Finding::green("role", "primary")
}

fn eviction(facts: &ServerFacts, is_accepted: bool) -> Finding {
    let ServerFacts {
        max_memory,
        eviction_policy,
        ..
    } = facts;
    let found = format!("maxmemory {max_memory}, maxmemory-policy {eviction_policy}");
    if *max_memory == 0 || eviction_policy == "noeviction" {
        return Finding::green("eviction", found);
    }
    let why = "when its memory is full, it deletes locks that are held";
    let remedy = "CONFIG SET maxmemory-policy noeviction";
    match is_accepted {
        true => Finding::yellow("eviction", found + ", evicting=accept", why, remedy),
        false => Finding::red("eviction", found, why, remedy),
    }
}

fn writes(refused: Option<&str>) -> Finding {
    match refused {
        None => Finding::green("writes", "accepted"),
        Some(text) => {
            let remedy = match text.split(' ').next() {
                Some("OOM") => "raise maxmemory above the memory in use, or delete data",
                Some("MISCONF") => "fix the disk error in the log of the server",
                Some("READONLY") => "use the address of the primary, or REPLICAOF NO ONE",
                _ if text.contains("unknown command") => {
                    "remove its rename-command from redis.conf"
                }
                _ => "fix the cause that it names",
            };
            Finding::red("writes", text, "no lock is granted or renewed", remedy)
        }
    }
}

fn persistence(kept: &Persistence, found: &Examination, context: MemberContext) -> Finding {
    let Persistence {
        append_only,
        append_fsync,
        no_fsync_on_rewrite,
        last_write_was_ok,
        replicas,
    } = kept;
    let was_replica = found.status.as_ref().is_ok_and(|it| it.was_replica);
    let settings = [
        ("appendonly", append_only, "yes"),
        ("appendfsync", append_fsync, "always"),
        ("no-appendfsync-on-rewrite", no_fsync_on_rewrite, "no"),
    ];
    let is = settings.map(|(name, is, _)| format!("{name} {is}"));
    let is = is.join(", ");
    let durable = match &found.status {
        Ok(status) => status.will_remember(),
        Err(_) => {
            let as_wanted = settings.iter().all(|(_, is, wanted)| is == wanted);
            *last_write_was_ok && as_wanted && *replicas == 0
        }
    };
    if durable {
        return Finding::green("persistence", format!("{is}: a restart forgets no locks"));
    }
    if !last_write_was_ok {
        let text = format!("{is}, but the last write to the file failed");
        let why = "a restart may forget locks";
        return Finding::yellow(
            "persistence",
            text,
            why,
            "fix the disk error in the log of the server",
        );
    }
    let why = if context.is_quorum {
        let penalty = whole_seconds(context.penalty);
        format!("a restart may forget locks, and the server then has no vote for {penalty}")
    } else {
        "a restart forgets locks, and a lock can then be granted twice".to_owned()
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
    if context.is_quorum || remedy.is_empty() {
        // What its member record says holds for as long as it runs.
        remedy.push("restart it: it is durable from then on".into());
    }
    Finding::yellow("persistence", text, why, remedy.join("; "))
}

fn rights(found: &Examination, context: MemberContext) -> Finding {
    let missing = &found.missing_rights;
    let Some(worst) = missing.iter().map(|right| right.need).min() else {
        return Finding::green("rights", "sufficient");
    };
    let rules: Vec<&str> = missing.iter().map(|right| right.rule.as_str()).collect();
    let rules = rules.join(" ");
    let text = format!("the user {:?} lacks {rules}", found.user);
    // A shell takes the line as it is, behind `redis-cli`.
    let quoted = missing.iter().map(|right| shell_word(&right.rule));
    let quoted = quoted.collect::<Vec<_>>().join(" ");
    let remedy = format!("ACL SETUSER {} {quoted}", shell_word(&found.user));
    match worst {
        Need::Locks => Finding::red(
            "rights",
            text,
            "locks cannot be acquired or released",
            remedy,
        ),
        Need::Sets if context.is_quorum => {
            let why = "its record of the quorum cannot be written, and without one it has no vote";
            Finding::red("rights", text, why, remedy)
        }
        Need::Sets => Finding::yellow(
            "rights",
            text,
            "no permits, no elections, no `once`, and `status` cannot name holders",
            remedy,
        ),
        Need::Waking => {
            let why = "waiters are not notified; they ask once a second";
            Finding::yellow("rights", text, why, remedy)
        }
        Need::Looking => {
            let why = "locks cannot be listed, and foreign keys cannot be identified";
            Finding::yellow("rights", text, why, remedy)
        }
        Need::Durability => {
            let why = "it is treated as not durable";
            Finding::yellow("rights", text, why, remedy)
        }
    }
}

/// The words of a rule, each as a shell reads it. redis-cli itself reads them in the same way.
fn shell_word(rule: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-_".contains(c);
    let words = rule
        .split(' ')
        .map(|word| match word.chars().all(is_plain) {
            true => word.to_owned(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        });
    words.collect::<Vec<_>>().join(" ")
}

fn push(speaks_resp3: bool) -> Finding {
    if speaks_resp3 {
        return Finding::green("push", "RESP3: waiters are notified");
    }
    let why = "waiters are not notified; they ask once a second";
    let remedy = "connect to the server directly, or through a proxy that supports HELLO 3";
    Finding::yellow("push", "no RESP3", why, remedy)
}

fn keys(keys: &KeyCensus, prefix: &str) -> Finding {
    let count = match keys.seen {
        1 => "1 key".to_owned(),
        seen => format!("{seen} keys"),
    };
    let among = if keys.is_complete {
        count
    } else {
        format!("a sample of {count}")
    };
    if let Some((key, kind)) = keys.damaged.first() {
        let text = format!("{key:?} is a {kind}, which leasehold does not write");
        let why = "its lock cannot be used";
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
        let found = format!("{among}, no other lock library's found");
        return Finding::green("keys", found);
    }
    let kinds = keys
        .foreign
        .iter()
        .map(|(kind, (count, name))| match (count, &**kind) {
            (1, "hash") => format!("the hash {name:?} (Redisson's locks are hashes)"),
            (1, _) => format!("the {kind} {name:?}"),
            (_, "hash") => {
                format!("{count} hashes, for example {name:?} (Redisson's locks are hashes)")
            }
            _ => format!("{count} of type {kind}, for example {name:?}"),
        });
    let text = format!("{}, among {among}", kinds.collect::<Vec<_>>().join("; "));
    let why = "a leasehold lock with such a name is refused; a lock of another library does not exclude it";
    let remedy = if prefix.is_empty() {
        "unless the names never collide, add ?prefix=locks: to the URL in all clients"
    } else {
        "unless the names never collide, use another ?prefix= in all clients"
    };
    Finding::yellow("keys", text, why, remedy)
}
