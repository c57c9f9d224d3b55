//! The rights that a user of locks needs. A probe for each right finds out whether the user has it. Probes
//! change nothing.

use leasehold::Error;

use crate::admin::listing::escaped;
use crate::connection::Probe;
use crate::resp::{CommandWriter, Value};

/// A rule that would give a user a right that it lacks, for `ACL SETUSER`.
///
/// All missing rules together are sufficient. The user may have some of them already: a probe can test
/// access to keys only with a command that the user may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    /// The rule, such as `+zadd`, `~leasehold:*` or `&leasehold:inbox:*`.
    pub rule: String,
    /// What is not possible without it.
    pub need: Need,
}

/// What a right is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Taking, renewing and releasing locks.
    Locks,
    /// Quorums, permits and records (elections, results), and showing who holds a lock.
    Sets,
    /// Notifying waiters. Without it they ask, within seconds.
    Waking,
    /// Listing locks, and naming the type of a lock of another library.
    Looking,
    /// Finding out whether the server keeps its data over a restart.
    Durability,
}

struct Right {
    rule: &'static str,
    need: Need,
    /// A command that the server refuses without the right, and that has no effect with it. `KEY` and
    /// `INBOX` are unused names.
    probe: &'static str,
}

/// Unused names.
pub(super) struct Unused {
    /// A lock.
    pub(super) lock: String,
    /// A record of the lock.
    pub(super) record: String,
}

/// An inbox that belongs to no client.
const INBOX: &str = "leasehold:inbox:0000000000000000";

/// All rights, in the order of the documented `ACL SETUSER` lines.
const RIGHTS: &[Right] = &[
    right("+info", Need::Locks, "INFO server"),
    right("+config|get", Need::Durability, "CONFIG GET appendonly"),
    right("+time", Need::Locks, "TIME"),
    // It sets only an existing key, and there is none.
    right("+set", Need::Locks, "SET KEY v XX"),
    right("+get", Need::Locks, "GET KEY"),
    right("+mget", Need::Looking, "MGET KEY"),
    right("+del", Need::Locks, "DEL KEY"),
    right("+exists", Need::Locks, "EXISTS KEY"),
    right("+type", Need::Looking, "TYPE KEY"),
    right("+pttl", Need::Locks, "PTTL KEY"),
    right("+pexpire", Need::Locks, "PEXPIRE KEY 1000"),
    right("+pexpireat", Need::Locks, "PEXPIREAT KEY 1000"),
    right("+zadd", Need::Locks, "ZADD KEY XX 1 f"),
    // The server checks the right first, and then refuses the argument, which is not a number.
    right("+zincrby", Need::Locks, "ZINCRBY KEY nothing f"),
    right("+zscore", Need::Locks, "ZSCORE KEY f"),
    right("+zmscore", Need::Locks, "ZMSCORE KEY f"),
    right("+zrange", Need::Locks, "ZRANGE KEY 0 0"),
    right("+zrangebyscore", Need::Locks, "ZRANGEBYSCORE KEY 0 0"),
    right("+zcount", Need::Locks, "ZCOUNT KEY 0 0"),
    right("+zrank", Need::Locks, "ZRANK KEY f"),
    right("+zrem", Need::Locks, "ZREM KEY f"),
    right("+zremrangebyscore", Need::Locks, "ZREMRANGEBYSCORE KEY 0 0"),
    right("+hget", Need::Sets, "HGET KEY f"),
    // The server checks the right first, and then refuses a field without a value.
    right("+hset", Need::Sets, "HSET KEY f v g"),
    right("+hdel", Need::Sets, "HDEL KEY f"),
    right("+hgetall", Need::Sets, "HGETALL KEY"),
    right("+scan", Need::Looking, "SCAN 0 COUNT 1"),
    // No script has this name.
    right(
        "+evalsha",
        Need::Locks,
        "EVALSHA 0000000000000000000000000000000000000000 0",
    ),
    // The server does not store text that is not Lua.
    right("+script|load", Need::Locks, "SCRIPT LOAD ("),
    right("+subscribe", Need::Waking, "SUBSCRIBE INBOX"),
    right("+publish", Need::Waking, "PUBLISH INBOX v"),
];

const fn right(rule: &'static str, need: Need, probe: &'static str) -> Right {
    Right { rule, need, probe }
}

impl Right {
    fn write(&self, names: &Unused, out: &mut CommandWriter<'_>) {
        let mut words = self.probe.split(' ');
        out.command(words.next().unwrap_or_default());
        for word in words {
            out.arg(match word {
                "KEY" => &names.record,
                "INBOX" => INBOX,
                word => word,
            });
        }
    }

    fn names(&self, what: &str) -> bool {
        self.probe.split(' ').any(|word| word == what)
    }
}

/// What the probes found about a user's rights.
pub(super) struct RightsFindings {
    pub(super) missing: Vec<MissingRight>,
    /// Why the server serves no locks, even if the user has the rights.
    pub(super) refuses_locks: Option<String>,
}

/// Finds out which rights the user lacks for locks whose names begin with `prefix`.
pub(super) async fn probe(
    probe: &mut Probe,
    names: &Unused,
    prefix: &str,
) -> Result<RightsFindings, Error> {
    // On RESP2, a connection can do nothing else after it subscribed.
    let speaks_resp3 = probe.speaks_resp3();
    let is_asked = |right: &&Right| speaks_resp3 || right.rule != "+subscribe";
    let asked: Vec<&Right> = RIGHTS.iter().filter(is_asked).collect();
    let mut answers = probe
        .ask(|out| {
            for right in &asked {
                right.write(names, out);
            }
            out.command("GET").arg(&names.lock);
            out.command("SET").arg(&names.lock).arg("v").arg("XX");
        })
        .await?;
    let of_lock = answers.split_off(asked.len());
    Ok(judge(&asked, &answers, &of_lock, prefix))
}

fn judge(asked: &[&Right], answers: &[Value], of_lock: &[Value], prefix: &str) -> RightsFindings {
    let mut missing: Vec<MissingRight> = Vec::new();
    let mut lacks = |rule: String, need: Need| {
        if missing.iter().all(|known| known.rule != rule) {
            missing.push(MissingRight { rule, need });
        }
    };
    // Without a prefix, the rule for the locks covers the records.
    let keys = |of: &str| match prefix {
        "" => "~*".to_owned(),
        _ => format!("~{of}*"),
    };
    let [mut of_record, mut of_inbox] = [Vec::new(), Vec::new()];
    let mut refuses_locks = None;
    for (right, answer) in asked.iter().zip(answers) {
        let denial = denial(answer);
        if right.names("KEY") {
            of_record.push(denial);
        } else if right.names("INBOX") {
            of_inbox.push(denial);
        }
        if denial == Some(Denial::Command) {
            lacks(right.rule.into(), right.need);
        }
        let is_ill = right.rule == "+set" || right.need == Need::Locks && is_unknown(answer);
        if is_ill && denial.is_none() {
            refuses_locks = refuses_locks.or(refusal(answer));
        }
    }
    let of_lock: Vec<_> = of_lock.iter().map(denial).collect();
    if may_be_shut(&of_lock) {
        lacks(keys(&escaped(prefix)), Need::Locks);
    }
    if may_be_shut(&of_record) {
        lacks(keys("leasehold:"), Need::Locks);
    }
    if may_be_shut(&of_inbox) {
        lacks("&leasehold:inbox:*".into(), Need::Waking);
    }
    RightsFindings {
        missing,
        refuses_locks,
    }
}

/// Whether keys or channels are or may be closed to the user. This is unknown if the user may run no
/// command on them.
fn may_be_shut(denials: &[Option<Denial>]) -> bool {
    let is_shut = |denial: &Option<Denial>| *denial == Some(Denial::Name);
    let is_hidden = |denial: &Option<Denial>| *denial == Some(Denial::Command);
    denials.iter().any(is_shut) || !denials.is_empty() && denials.iter().all(is_hidden)
}

/// What a user may not use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denial {
    Command,
    /// The key or the channel.
    Name,
}

fn denial(answer: &Value) -> Option<Denial> {
    match answer {
        Value::Error { code, message } if code == "NOPERM" => {
            let is_command = message.contains("run the");
            Some(if is_command {
                Denial::Command
            } else {
                Denial::Name
            })
        }
        _ => None,
    }
}

/// Whether the server does not have the command, for example because of `rename-command`.
fn is_unknown(answer: &Value) -> bool {
    let text = "unknown command";
    matches!(answer, Value::Error { message, .. } if message.to_lowercase().starts_with(text))
}

fn refusal(answer: &Value) -> Option<String> {
    match answer {
        Value::Error { code, message } => Some(format!("{code} {message}")),
        _ => None,
    }
}

/// Reads replies as those to the probes, for the fuzz target.
#[cfg(any(test, fuzzing))]
pub(super) fn read_all(values: &[Value]) {
    let asked: Vec<&Right> = RIGHTS.iter().collect();
    let _ = judge(&asked, values, values, "app:");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_list_the_same_rights() {
        let rules: Vec<_> = RIGHTS.iter().map(|right| right.rule).collect();
        let line = format!(
            "ACL SETUSER locks on >secret ~* {} &leasehold:inbox:*\n",
            rules.join(" ")
        );
        assert!(include_str!("../../lib.rs").contains(&line), "{line}");
        let page = include_str!("../../../../../docs/wire.md");
        assert!(page.contains(&line), "{line}");
    }

    #[test]
    fn rights_that_messages_name_are_listed() {
        for crate::codec::Rights(named) in
            [crate::codec::RIGHTS, crate::admin::server::INSPECT_RIGHTS]
        {
            for rule in named.split(' ') {
                assert!(RIGHTS.iter().any(|right| right.rule == rule), "{rule}");
            }
        }
    }

    #[test]
    fn commands_of_scripts_are_listed() {
        for script in crate::scripts::SCRIPTS {
            let calls = script.text.split("call('").skip(1);
            for command in calls.filter_map(|call| call.split_once('\'')) {
                let rule = format!("+{}", command.0.to_lowercase());
                let is_listed = RIGHTS.iter().any(|right| right.rule == rule);
                assert!(is_listed, "{}: {rule}", script.name);
            }
        }
    }

    fn no(text: &str) -> Value {
        Value::error("NOPERM", text)
    }

    fn missing(prefix: &str, denials: &[(&str, &str)], of_lock: &Value) -> Vec<String> {
        let asked: Vec<&Right> = RIGHTS.iter().collect();
        let answer = |right: &&Right| {
            let denied = denials.iter().find(|(rule, _)| *rule == right.rule);
            denied.map_or(Value::Null, |(_, text)| no(text))
        };
        let answers: Vec<Value> = asked.iter().map(answer).collect();
        let of_lock = std::slice::from_ref(of_lock);
        let found = judge(&asked, &answers, of_lock, prefix);
        found.missing.into_iter().map(|it| it.rule).collect()
    }

    #[test]
    fn each_denial_has_the_rule_that_lifts_it() {
        let command = "this user has no permissions to run the 'zadd' command";
        let newer = "User ann has no permissions to run the 'zadd' command";
        let old = "this user has no permissions to access one of the keys used as arguments";
        let key = "No permissions to access a key";
        let channel = "No permissions to access a channel";
        for text in [command, newer] {
            assert_eq!(missing("", &[("+zadd", text)], &Value::Null), ["+zadd"]);
        }
        for text in [old, key] {
            let denials = [("+get", text), ("+zadd", text)];
            assert_eq!(missing("", &denials, &Value::Null), ["~*"]);
            assert_eq!(missing("app:", &denials, &Value::Null), ["~leasehold:*"]);
            assert_eq!(missing("a*:", &[], &no(text)), ["~a\\*:*"]);
        }
        let denials = [("+publish", channel), ("+subscribe", channel)];
        assert_eq!(missing("", &denials, &Value::Null), ["&leasehold:inbox:*"]);
        assert!(missing("", &[], &Value::Null).is_empty());
        let hidden = [("+publish", command), ("+subscribe", command)];
        let rules = ["+subscribe", "+publish", "&leasehold:inbox:*"];
        assert_eq!(missing("", &hidden, &Value::Null), rules);
        assert_eq!(missing("app:", &[], &no(command)), ["~app:*"]);
    }

    #[test]
    fn server_that_takes_no_writes_says_why() {
        let asked: Vec<&Right> = RIGHTS.iter().filter(|it| it.rule == "+set").collect();
        let full = Value::error("OOM", "command not allowed");
        let found = judge(&asked, &[full], &[Value::Null], "");
        assert_eq!(found.refuses_locks.unwrap(), "OOM command not allowed");
        assert!(found.missing.is_empty());
        let found = judge(&asked, &[Value::Null], &[], "");
        assert_eq!(found.refuses_locks, None);
    }
}
