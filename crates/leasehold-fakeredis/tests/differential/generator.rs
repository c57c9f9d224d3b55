//! Generates commands from a seed.

use std::fmt;

use leasehold::env::Entropy as _;
use leasehold_testkit::SeededEntropy;

use crate::scripts::{CALL, CAUGHT, INSPECT, OTHERS, PCALL};

/// The first client uses RESP2 and transactions, the second uses RESP3 and subscribes, the third uses RESP2
/// and subscribes.
pub(crate) const CLIENTS: usize = 3;
pub(crate) const RESP3: usize = 1;

/// A command of a client.
pub(crate) struct ClientCommand {
    pub(crate) client: usize,
    pub(crate) words: Vec<String>,
    /// Integers in the reply may be times to live.
    pub(crate) has_times: bool,
    /// The reply is that of a scan.
    pub(crate) is_unordered: bool,
}

impl ClientCommand {
    pub(crate) fn new(client: usize, words: &[&str]) -> Self {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let says = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name));
        Self {
            client,
            has_times: says("TTL") || says("PTTL") || says("EXEC"),
            is_unordered: says("SCAN"),
            words,
        }
    }
}

impl fmt::Display for ClientCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}: {}", self.client, self.words.join(" "))
    }
}

pub(crate) struct Generator {
    entropy: SeededEntropy,
    now_ms: u64,
    /// How many times to live were generated. No two are alike, and none is like those of EX and EXPIRE.
    times: u64,
}

impl Generator {
    pub(crate) fn new(seed: u64, now_us: u64) -> Self {
        Self {
            entropy: SeededEntropy::new(seed),
            now_ms: now_us / 1000,
            times: seed,
        }
    }

    /// Reads all data.
    pub(crate) fn inspection() -> ClientCommand {
        let kinds = ["s", "h", "z", "l", "k"];
        let keys = kinds.map(|kind| [format!("{kind}0"), format!("{kind}1")]);
        let mut words = vec!["EVAL", INSPECT, "10"];
        words.extend(keys.iter().flatten().map(String::as_str));
        ClientCommand {
            has_times: true,
            ..ClientCommand::new(0, &words)
        }
    }

    /// Returns the steps before all random ones.
    pub(crate) fn opening(&self) -> Vec<ClientCommand> {
        let load = |text| ClientCommand::new(0, &["SCRIPT", "LOAD", text]);
        vec![load(CALL), load(PCALL)]
    }

    pub(crate) fn step(&mut self) -> ClientCommand {
        let client = self.below(CLIENTS as u64) as usize;
        let kind = self.below(20);
        let mut words = match (kind, client) {
            (0, 0) => vec![self.pick(&["MULTI", "EXEC", "EXEC", "DISCARD"]).to_owned()],
            (0, _) | (1, 2) => self.subscription(),
            (1..4, _) => self.script(),
            // The server in memory looks for subcommands when a transaction runs; a real one looks before that.
            (4, 1..) => self.other(),
            _ => self.command(),
        };
        // One word too many or too few.
        match self.below(40) {
            0 => drop(words.pop().filter(|_| words.len() > 1)),
            1 => words.push(self.value()),
            _ => {}
        }
        if words == ["UNSUBSCRIBE"] {
            // A real server leaves all channels in a random order.
            words.push(self.channel());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        ClientCommand::new(client, if words.is_empty() { &["PING"] } else { &words })
    }

    fn subscription(&mut self) -> Vec<String> {
        let name = self.pick(&["SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE"]);
        let mut words = vec![name.to_owned(), self.channel()];
        if self.below(3) == 0 {
            words.push(self.channel());
        }
        words
    }

    fn script(&mut self) -> Vec<String> {
        let text = self.pick(&[CALL, PCALL, CAUGHT]);
        if self.below(2) == 0 {
            let text = self.pick(&OTHERS);
            let keys = (0..4).map(|_| self.key()).collect::<Vec<_>>();
            let mut words = vec!["EVAL".to_owned(), text.to_owned(), "4".to_owned()];
            words.extend(keys);
            words.extend((0..3).map(|_| self.value()));
            return words;
        }
        let command = self.command();
        let mut words = match self.below(3) {
            0 => vec!["EVALSHA".to_owned(), sha1(text), "0".to_owned()],
            _ => vec!["EVAL".to_owned(), text.to_owned(), "0".to_owned()],
        };
        words.extend(command);
        words
    }

    /// A command that concerns no key.
    fn other(&mut self) -> Vec<String> {
        let key = self.key();
        let pattern = self.pick(&["*", "k?", "k[0-1]", "z*", "[^k]*"]);
        let commands: [&[&str]; 15] = [
            &["PING"],
            &["PING", "text"],
            &["ECHO", "text"],
            &["SELECT", "0"],
            &["SELECT", "x"],
            &["CLIENT", "SETNAME", "me"],
            &["CLIENT", "FROB"],
            &["HELLO", "9", "FROB"],
            &["FROB", &key],
            &[
                "SCRIPT",
                "EXISTS",
                "abc",
                "6b1bf486c81ceb7edf3c093f4c48582e38c0e791",
            ],
            &["SCRIPT", "FLUSH"],
            &["SCRIPT", "FROB"],
            &["SCAN", "0", "COUNT", "1000", "MATCH", pattern],
            &["SCAN", "0", "COUNT", "1000", "TYPE", "zset"],
            &["SCAN", "x"],
        ];
        let words = commands[self.below(commands.len() as u64) as usize];
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// A command on keys, as a pattern of words. Each upper-case word that is not an option is a placeholder.
    fn command(&mut self) -> Vec<String> {
        const COMMANDS: [&str; 59] = [
            "GET s",
            "SET s V",
            "SET s V [set]",
            "SET s V [set] [set]",
            "SET s V PX T",
            "SET s V EX 900",
            "SET s V PXAT A",
            "SET s V GET NX PX T",
            "INCR s",
            "INCRBY s I",
            "DEL k k",
            "DEL k",
            "UNLINK k",
            "EXISTS k k k",
            "TYPE k",
            "PTTL k",
            "TTL k",
            "PEXPIRE k T",
            "PEXPIRE k T [expire]",
            "PEXPIRE k T [expire] [expire]",
            "PEXPIRE k P",
            "PEXPIREAT k A",
            "EXPIRE k 700",
            "PERSIST k",
            "HSET h M V",
            "HSET h M V M V",
            "HGET h M",
            "HMGET h M M M",
            "HGETALL h",
            "HDEL h M M",
            "HEXISTS h M",
            "HINCRBY h M I",
            "HLEN h",
            "ZADD z S M",
            "ZADD z S M S M",
            "ZADD z [zadd] S M S M",
            "ZADD z [zadd] [zadd] S M",
            "ZADD z [zadd] [zadd] [zadd] S M",
            "ZADD z [zadd] INCR S M",
            "ZINCRBY z S M",
            "ZREM z M M",
            "ZSCORE z M",
            "ZMSCORE z M M",
            "ZCARD z",
            "ZCOUNT z R R",
            "ZRANK z M",
            "ZREVRANK z M",
            "ZRANGE z N N",
            "ZRANGE z N N [zrange]",
            "ZRANGE z N N REV WITHSCORES",
            "ZRANGE z R R BYSCORE [zrange]",
            "ZRANGE z R R BYSCORE LIMIT N N [zrange]",
            "ZRANGEBYSCORE z R R WITHSCORES LIMIT N N",
            "ZPOPMIN z",
            "ZPOPMIN z N",
            "ZREMRANGEBYSCORE z R R",
            "ZREMRANGEBYRANK z N N",
            "RPUSH l V",
            "PUBLISH c V",
        ];
        let pattern = self.pick(&COMMANDS);
        pattern.split(' ').map(|word| self.word(word)).collect()
    }

    fn word(&mut self, word: &str) -> String {
        let option: &[&str] = match word {
            "[set]" => &["NX", "XX", "GET", "KEEPTTL", "get", "FROB"],
            "[expire]" => &["NX", "XX", "GT", "LT", "gt", "FROB"],
            "[zadd]" => &["NX", "XX", "GT", "LT", "CH", "INCR", "ch"],
            "[zrange]" => &["REV", "WITHSCORES", "withscores", "BYSCORE", "FROB"],
            // Members, scores, limits of scores, indices, small integers.
            "M" => &["a", "b", "c"],
            "S" => &[
                "0",
                "1",
                "-1",
                "2.5",
                "2.5",
                "1e3",
                "1700000000000001",
                "inf",
                "-inf",
                "x",
            ],
            "R" => &["-inf", "+inf", "0", "(1", "(2.5", "2.5", "1000", "x"],
            "N" => &["0", "1", "2", "-1", "-2", "10", "-10", "x"],
            "I" => &[
                "1",
                "-1",
                "10",
                "0",
                "9223372036854775807",
                "-9223372036854775808",
                "1.5",
            ],
            // Times to live that are over or invalid.
            "P" => &[
                "0",
                "-1",
                "-9223372036854775808",
                "9223372036854775807",
                "x",
            ],
            "k" => return self.key(),
            "s" | "h" | "z" | "l" => return self.key_of(word),
            "c" => return self.channel(),
            "V" => return self.value(),
            "T" => return self.time_to_live(),
            "A" => return self.instant(),
            other => return other.to_owned(),
        };
        self.pick(option).to_owned()
    }

    fn key(&mut self) -> String {
        let kind = self.pick(&["s", "h", "z", "l", "k"]);
        self.key_of(kind)
    }

    /// Returns a key of that kind; rarely one that may hold another kind.
    fn key_of(&mut self, kind: &str) -> String {
        let kind = match self.below(10) {
            0 => "k",
            _ => kind,
        };
        format!("{kind}{}", self.below(2))
    }

    fn channel(&mut self) -> String {
        format!("c{}", self.below(3))
    }

    fn value(&mut self) -> String {
        let values = [
            "",
            "text",
            "0",
            "1",
            "-7",
            "01",
            "1.5",
            "9223372036854775807",
            "a\r\nb",
        ];
        self.pick(&values).to_owned()
    }

    /// Milliseconds. Long enough that the time between the two servers does not matter.
    fn time_to_live(&mut self) -> String {
        self.times += 1;
        (125_000 + self.times * 37 % 101 * 50_000).to_string()
    }

    fn instant(&mut self) -> String {
        if self.below(4) == 0 {
            return "1000".to_owned();
        }
        let left: u64 = self.time_to_live().parse().unwrap();
        (self.now_ms + left).to_string()
    }

    fn below(&self, bound: u64) -> u64 {
        self.entropy.next_u64() % bound
    }

    fn pick<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

fn sha1(text: &str) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}
