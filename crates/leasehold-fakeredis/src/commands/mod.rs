//! The commands: a table of all of them, and one file for each family.

mod expiry;
mod hashes;
mod keys;
mod lists;
mod pubsub;
mod scripting;
mod server;
mod sorted_sets;
mod strings;
mod transactions;
mod zadd;
mod zrange;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use crate::core::Core;
use crate::reply::Outcome;

/// A command, as the server looks it up.
pub(crate) struct Command {
    /// In upper case.
    pub(crate) name: &'static str,
    /// The number of words, including the name. A negative number means "at least", as in Redis' own table.
    arity: i8,
    pub(crate) run: fn(&mut Core, &[&[u8]]) -> Outcome,
    pub(crate) in_scripts: bool,
}

impl Command {
    pub(crate) fn takes(&self, words: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        words == least || (self.arity < 0 && words > least)
    }

    pub(crate) fn lower_name(&self) -> String {
        self.name.to_ascii_lowercase()
    }

    pub(crate) fn is_about_transactions(&self) -> bool {
        matches!(self.name, "EXEC" | "DISCARD" | "MULTI")
    }

    pub(crate) fn runs_while_subscribed(&self) -> bool {
        matches!(self.name, "SUBSCRIBE" | "UNSUBSCRIBE" | "PING")
    }
}

macro_rules! commands {
    ($($name:literal $arity:literal $run:path $(, $outside:ident)?;)*) => {
        &[$(Command {
            name: $name,
            arity: $arity,
            run: $run,
            in_scripts: true $(&& $outside)?,
        }),*]
    };
}

const OUTSIDE: bool = false;

/// Ordered by name.
static COMMANDS: &[Command] = commands! {
    "AUTH" -2 server::auth, OUTSIDE;
    "CLIENT" -2 server::client, OUTSIDE;
    "CONFIG" -2 server::config, OUTSIDE;
    "DBSIZE" 1 keys::dbsize;
    "DEL" -2 keys::del;
    "DISCARD" 1 transactions::discard, OUTSIDE;
    "ECHO" 2 server::echo;
    "EVAL" -3 scripting::eval, OUTSIDE;
    "EVALSHA" -3 scripting::evalsha, OUTSIDE;
    "EXEC" 1 transactions::exec, OUTSIDE;
    "EXISTS" -2 keys::exists;
    "EXPIRE" -3 expiry::expire;
    "FLUSHALL" -1 keys::flush;
    "FLUSHDB" -1 keys::flush;
    "GET" 2 strings::get;
    "HDEL" -3 hashes::hdel;
    "HELLO" -1 server::hello, OUTSIDE;
    "HEXISTS" 3 hashes::hexists;
    "HGET" 3 hashes::hget;
    "HGETALL" 2 hashes::hgetall;
    "HINCRBY" 4 hashes::hincrby;
    "HLEN" 2 hashes::hlen;
    "HMGET" -3 hashes::hmget;
    "HSET" -4 hashes::hset;
    "INCR" 2 strings::incr;
    "INCRBY" 3 strings::incrby;
    "INFO" -1 server::info;
    "LLEN" 2 lists::llen;
    "LRANGE" 4 lists::lrange;
    "MULTI" 1 transactions::multi, OUTSIDE;
    "PERSIST" 2 expiry::persist;
    "PEXPIRE" -3 expiry::pexpire;
    "PEXPIREAT" -3 expiry::pexpireat;
    "PING" -1 server::ping;
    "PTTL" 2 expiry::pttl;
    "PUBLISH" 3 pubsub::publish;
    "RPUSH" -3 lists::rpush;
    "SCAN" -2 keys::scan;
    "SCRIPT" -2 scripting::script, OUTSIDE;
    "SELECT" 2 server::select;
    "SET" -3 strings::set;
    "SUBSCRIBE" -2 pubsub::subscribe, OUTSIDE;
    "TIME" 1 server::time;
    "TTL" 2 expiry::ttl;
    "TYPE" 2 keys::type_of;
    "UNLINK" -2 keys::del;
    "UNSUBSCRIBE" -1 pubsub::unsubscribe, OUTSIDE;
    "ZADD" -4 zadd::zadd;
    "ZCARD" 2 sorted_sets::zcard;
    "ZCOUNT" 4 sorted_sets::zcount;
    "ZINCRBY" 4 zadd::zincrby;
    "ZMSCORE" -3 sorted_sets::zmscore;
    "ZPOPMIN" -2 sorted_sets::zpopmin;
    "ZRANGE" -4 zrange::zrange;
    "ZRANGEBYSCORE" -4 zrange::zrangebyscore;
    "ZRANK" 3 sorted_sets::zrank;
    "ZREM" -3 sorted_sets::zrem;
    "ZREMRANGEBYRANK" 4 sorted_sets::zremrangebyrank;
    "ZREMRANGEBYSCORE" 4 sorted_sets::zremrangebyscore;
    "ZREVRANK" 3 sorted_sets::zrevrank;
    "ZSCORE" 3 sorted_sets::zscore;
};

static BY_NAME: LazyLock<HashMap<&[u8], &Command, FixedState>> = LazyLock::new(|| {
    let all = COMMANDS.iter();
    all.map(|command| (command.name.as_bytes(), command))
        .collect()
});

/// Finds the command with this name, in upper or lower case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let in_capitals = BY_NAME.get(name).copied();
    in_capitals.or_else(|| BY_NAME.get(&name.to_ascii_uppercase()[..]).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_either_case() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in COMMANDS {
            let found = find(command.lower_name().as_bytes()).unwrap();
            assert_eq!(found.name, command.name);
        }
        assert!(find(b"GETX").is_none());
    }
}
