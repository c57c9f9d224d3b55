//! The rights that a user of locks needs, each with a command that shows whether it is there and
//! changes nothing.

use crate::connection::{Answer, Command, Refusal, Visit};
use crate::scan::escaped;

/// A rule that `ACL SETUSER` would have to be given for a user who lacks a right. All of them together are
/// enough, and some of them may be there already: whether keys are open shows only where a command is allowed.
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
    /// For taking, renewing and giving back locks: without it there are none.
    Locks,
    /// For the card of a set's member, for permits, for records (elections, results), and for saying who
    /// holds a lock.
    Sets,
    /// For telling waiters that it is their turn; without it they ask, within seconds.
    Waking,
    /// For listing locks, and for naming the type of a foreign one.
    Looking,
    /// For knowing whether the server keeps its data over a restart.
    Durability,
}

struct Right {
    rule: &'static str,
    need: Need,
    about: About,
    /// A command that is refused without the right, and changes nothing with it.
    probe: fn(&Names) -> Command,
}

/// What a probe names.
#[derive(Clone, Copy)]
enum About {
    Nothing,
    Record,
    Inbox,
}

/// What the probes are about: names that nobody uses.
pub(super) struct Names {
    /// A lock.
    pub(super) lock: String,
    /// A record beside it.
    pub(super) record: String,
}

/// The inbox of no client.
const INBOX: &str = "leasehold:inbox:0000000000000000";

/// The same list as in the `ACL SETUSER` line of the crate's front page, in its order.
const RIGHTS: &[Right] = &[
    right("+info", Need::Locks, About::Nothing, |_| {
        Command::new("INFO").arg("server")
    }),
    right("+config|get", Need::Durability, About::Nothing, |_| {
        Command::new("CONFIG").arg("GET").arg("appendonly")
    }),
    right("+time", Need::Locks, About::Nothing, |_| {
        Command::new("TIME")
    }),
    right("+set", Need::Locks, About::Record, |it| {
        // Where the key is, and it is not.
        on("SET", it).arg("").arg("XX")
    }),
    right("+get", Need::Locks, About::Record, |it| on("GET", it)),
    right("+mget", Need::Looking, About::Record, |it| on("MGET", it)),
    right("+del", Need::Locks, About::Record, |it| on("DEL", it)),
    right("+exists", Need::Locks, About::Record, |it| on("EXISTS", it)),
    right("+type", Need::Looking, About::Record, |it| on("TYPE", it)),
    right("+pttl", Need::Locks, About::Record, |it| on("PTTL", it)),
    right("+pexpire", Need::Locks, About::Record, |it| {
        on("PEXPIRE", it).arg("1000")
    }),
    right("+pexpireat", Need::Locks, About::Record, |it| {
        on("PEXPIREAT", it).arg("1000")
    }),
    right("+zadd", Need::Locks, About::Record, |it| {
        on("ZADD", it).arg("XX").arg("1").arg("f")
    }),
    // What is no number is refused after the right was asked for.
    right("+zincrby", Need::Locks, About::Record, |it| {
        on("ZINCRBY", it).arg("nothing").arg("f")
    }),
    right("+zscore", Need::Locks, About::Record, |it| {
        on("ZSCORE", it).arg("f")
    }),
    right("+zrange", Need::Locks, About::Record, |it| {
        on("ZRANGE", it).arg("0").arg("0")
    }),
    right("+zrank", Need::Locks, About::Record, |it| {
        on("ZRANK", it).arg("f")
    }),
    right("+zrem", Need::Locks, About::Record, |it| {
        on("ZREM", it).arg("f")
    }),
    right("+zremrangebyscore", Need::Locks, About::Record, |it| {
        on("ZREMRANGEBYSCORE", it).arg("0").arg("0")
    }),
    right("+hget", Need::Sets, About::Record, |it| {
        on("HGET", it).arg("f")
    }),
    // A field without a value is refused after the right was asked for.
    right("+hset", Need::Sets, About::Record, |it| {
        on("HSET", it).arg("f").arg("v").arg("g")
    }),
    right("+hgetall", Need::Sets, About::Record, |it| {
        on("HGETALL", it)
    }),
    right("+scan", Need::Looking, About::Nothing, |_| {
        Command::new("SCAN").arg("0").arg("COUNT").arg("1")
    }),
    right("+evalsha", Need::Locks, About::Nothing, |_| {
        // The name of no script.
        Command::new("EVALSHA").arg("0".repeat(40)).arg("0")
    }),
    right("+script|load", Need::Locks, About::Nothing, |_| {
        // What is no Lua is not kept.
        Command::new("SCRIPT").arg("LOAD").arg("(")
    }),
    right("+subscribe", Need::Waking, About::Inbox, |_| {
        Command::new("SUBSCRIBE").arg(INBOX)
    }),
    right("+publish", Need::Waking, About::Inbox, |_| {
        Command::new("PUBLISH").arg(INBOX).arg("")
    }),
];

const fn right(
    rule: &'static str,
    need: Need,
    about: About,
    probe: fn(&Names) -> Command,
) -> Right {
    Right {
        rule,
        need,
        about,
        probe,
    }
}

fn on(command: &str, names: &Names) -> Command {
    Command::new(command).arg(&names.record)
}

/// What was found of a user's rights.
pub(super) struct Found {
    pub(super) missing: Vec<MissingRight>,
    /// Why the server serves no locks, though the user may have them.
    pub(super) refuses_locks: Option<String>,
}

/// Finds out what the user of `visit` lacks, whose locks have names that begin with `prefix`.
pub(super) async fn probe(
    visit: &Visit,
    names: &Names,
    prefix: &str,
) -> Result<Found, leasehold::Error> {
    // A connection of the old protocol could do nothing else after it subscribed.
    let is_asked = |right: &&Right| visit.speaks_resp3() || right.rule != "+subscribe";
    let asked: Vec<&Right> = RIGHTS.iter().filter(is_asked).collect();
    let mut commands: Vec<Command> = asked.iter().map(|right| (right.probe)(names)).collect();
    commands.push(Command::new("GET").arg(&names.lock));
    commands.push(Command::new("SET").arg(&names.lock).arg("").arg("XX"));
    let mut answers = visit.ask(&commands).await?;
    let of_lock = answers.split_off(asked.len());
    Ok(judge(&asked, &answers, &of_lock, prefix))
}

fn judge(asked: &[&Right], answers: &[Answer], of_lock: &[Answer], prefix: &str) -> Found {
    let mut missing = Vec::new();
    let mut lacks = |rule: String, need: Need| {
        if missing
            .iter()
            .all(|known: &MissingRight| known.rule != rule)
        {
            missing.push(MissingRight { rule, need });
        }
    };
    // The rule for locks of no prefix lets the records in, too.
    let keys = |of: &str| match prefix {
        "" => "~*".to_owned(),
        _ => format!("~{of}*"),
    };
    let [mut of_record, mut of_inbox] = [Vec::new(), Vec::new()];
    let mut refuses_locks = None;
    for (right, answer) in asked.iter().zip(answers) {
        let denial = denial(answer);
        match right.about {
            About::Record => of_record.push(denial),
            About::Inbox => of_inbox.push(denial),
            About::Nothing => {}
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
    Found {
        missing,
        refuses_locks,
    }
}

/// Whether keys or channels are shut to the user, or may be: where no command is allowed on them, it
/// does not show.
fn may_be_shut(denials: &[Option<Denial>]) -> bool {
    let is_shut = |denial: &Option<Denial>| *denial == Some(Denial::Name);
    let is_hidden = |denial: &Option<Denial>| *denial == Some(Denial::Command);
    denials.iter().any(is_shut) || !denials.is_empty() && denials.iter().all(is_hidden)
}

/// What a user may not do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denial {
    Command,
    /// The key or the channel.
    Name,
}

fn denial(answer: &Answer) -> Option<Denial> {
    let Answer::Refused(refusal) = answer else {
        return None;
    };
    let which = if refusal.text.contains("run the") {
        Denial::Command
    } else {
        Denial::Name
    };
    refusal.is_missing_right().then_some(which)
}

/// Whether the server does not have the command, or not any more (`rename-command`).
fn is_unknown(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(refusal) if refusal.text.starts_with("unknown command"))
}

fn refusal(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Refused(Refusal { code, text }) => Some(format!("{code} {text}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_page_has_the_same_rights() {
        let rules: Vec<_> = RIGHTS.iter().map(|right| right.rule).collect();
        let line = format!(
            "//! ACL SETUSER locks on >secret ~* {} &leasehold:inbox:*\n",
            rules.join(" ")
        );
        assert!(include_str!("../lib.rs").contains(&line), "{line}");
    }

    #[test]
    fn what_scripts_may_lack_is_among_them() {
        let crate::connection::Rights(named) = crate::scripts::RIGHTS;
        for rule in named.split(' ') {
            assert!(RIGHTS.iter().any(|right| right.rule == rule), "{rule}");
        }
    }

    fn no(text: &str) -> Answer {
        Answer::Refused(Refusal::new("NOPERM", text))
    }

    fn missing(prefix: &str, denials: &[(&str, &str)], of_lock: &Answer) -> Vec<String> {
        let asked: Vec<&Right> = RIGHTS.iter().collect();
        let answer = |right: &&Right| {
            let denied = denials.iter().find(|(rule, _)| *rule == right.rule);
            denied.map_or(Answer::Nil, |(_, text)| no(text))
        };
        let answers: Vec<Answer> = asked.iter().map(answer).collect();
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
            assert_eq!(missing("", &[("+zadd", text)], &Answer::Nil), ["+zadd"]);
        }
        for text in [old, key] {
            let denials = [("+get", text), ("+zadd", text)];
            assert_eq!(missing("", &denials, &Answer::Nil), ["~*"]);
            assert_eq!(missing("app:", &denials, &Answer::Nil), ["~leasehold:*"]);
            assert_eq!(missing("a*:", &[], &no(text)), ["~a\\*:*"]);
        }
        let denials = [("+publish", channel), ("+subscribe", channel)];
        assert_eq!(missing("", &denials, &Answer::Nil), ["&leasehold:inbox:*"]);
        assert!(missing("", &[], &Answer::Nil).is_empty());
        let hidden = [("+publish", command), ("+subscribe", command)];
        let rules = ["+subscribe", "+publish", "&leasehold:inbox:*"];
        assert_eq!(missing("", &hidden, &Answer::Nil), rules);
        assert_eq!(missing("app:", &[], &no(command)), ["~app:*"]);
    }

    #[test]
    fn a_server_that_takes_no_writes_says_why() {
        let asked: Vec<&Right> = RIGHTS.iter().filter(|it| it.rule == "+set").collect();
        let full = Answer::Refused(Refusal::new("OOM", "command not allowed"));
        let open = [Answer::Nil];
        let found = judge(&asked, &[full], &open, "");
        assert_eq!(found.refuses_locks.unwrap(), "OOM command not allowed");
        assert!(found.missing.is_empty());
        assert!(
            judge(&asked, &[Answer::Nil], &[], "")
                .refuses_locks
                .is_none()
        );
    }
}
