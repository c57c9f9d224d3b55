//! What a short script may find at a server, and be asked, made up by a seed.

use leasehold::ambient::Entropy as _;
use leasehold_testkit::SeededEntropy;

/// Those whose inbox somebody hears, and all.
pub(super) const HEARING: u64 = 4;
pub(super) const CLIENTS: u64 = 6;

/// Under which this user of the server may not tell anybody anything.
pub(super) const UNHEARD_BY_USER: u64 = HEARING - 1;

pub(super) const LOCK: &str = "deploy";
pub(super) const READERS: &str = "leasehold:readers:{deploy}:deploy";
pub(super) const QUEUE: &str = "leasehold:queue:{deploy}:deploy";
pub(super) const OFFERED: &str = "leasehold:offered:{deploy}:deploy";
const FENCE: &str = "leasehold:fence:0:{deploy}:deploy";
const CARD: &str = "leasehold:card";

/// The records of the lock, in the order in which the general scripts have them.
pub(super) const KEYS: [&str; 6] = [LOCK, FENCE, READERS, QUEUE, OFFERED, CARD];

/// Later than anything a script sets, so that what it leaves alone is told from what it sets.
const LASTS_MS: u64 = 3_000_000_000;

/// Longer than any test takes: the end of a reader's lease is an instant of the clock that stands still.
const TTL_MS: &str = "4000000";

/// Since when somebody waits who is before all others.
const FIRST: &str = "1600000000000000";

/// Where the counter and the queue are among [`KEYS`].
pub(super) const FENCE_AT: usize = 1;
pub(super) const QUEUE_AT: usize = 3;

pub(super) fn client(number: u64) -> String {
    format!("{:016x}", number + 1)
}

/// The records, and a call of one of the scripts.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) commands: Vec<Vec<String>>,
    pub(super) arguments: Vec<String>,
    /// Whether the user may tell all clients something.
    pub(super) tells_all: bool,
}

/// Makes worlds up, at an instant of the server in milliseconds.
pub(super) struct Maker {
    entropy: SeededEntropy,
    now_ms: u64,
    /// In some worlds most of who is there is of one client.
    usual: Option<u64>,
    world: World,
}

impl Maker {
    pub(super) fn new(seed: u64, now_ms: u64) -> Self {
        let entropy = SeededEntropy::new(seed);
        let usual = entropy.next_u64() % (2 * CLIENTS);
        Self {
            entropy,
            now_ms,
            usual: (usual < CLIENTS).then_some(usual),
            world: World::default(),
        }
    }

    /// A lock that somebody lets go of.
    pub(super) fn departure(mut self) -> World {
        let owner = self.owner();
        let value = match self.below(10) {
            0 => self.other_value(),
            _ => Some(owner.clone()),
        };
        self.records(value);
        let departure = match self.below(10) {
            0 => ["leave free".to_owned(), "150".to_owned()].to_vec(),
            1 => ["requeue".to_owned(), self.waiter(), self.since()].to_vec(),
            _ => vec!["hand over".to_owned()],
        };
        let mode = self.pick(&["exclusive", "exclusive", "exclusive", "exclusive", "shared"]);
        self.world.arguments = vec![mode.to_owned(), owner];
        self.world.arguments.extend(departure);
        self.world
    }

    /// A lock that somebody wants in turn.
    pub(super) fn attempt(mut self) -> World {
        let (owner, waiter, since) = (self.owner(), self.waiter(), self.since());
        let value = match self.below(10) {
            0..4 => Some(format!("leasehold:next:{since}:{waiter}")),
            4..6 => Some(self.owner()),
            6 => Some(owner.clone()),
            7 => Some(format!("leasehold:next:{}:{}", self.since(), self.entry())),
            8 => Some("job-1".to_owned()),
            _ => self.other_value(),
        };
        self.records(value);
        let mode = self.pick(&["exclusive", "exclusive", "exclusive", "exclusive", "shared"]);
        let proposal = (self.now_ms * 1000).to_string();
        let queued = self.below(10) > 0;
        let turn = [waiter, since].map(|word| if queued { word } else { String::new() });
        self.world.arguments = [mode, &owner, TTL_MS, &proposal]
            .map(str::to_owned)
            .into_iter()
            .chain(turn)
            .collect();
        self.world
    }

    /// A lock that somebody lets go of, and another waiter of its client wants in turn.
    pub(super) fn succession(mut self) -> World {
        let (held, owner, waiter) = (self.owner(), self.owner(), self.waiter());
        let value = match self.below(10) {
            0 => self.other_value(),
            _ => Some(held.clone()),
        };
        self.records(value);
        if self.below(4) > 0 {
            self.set(&["ZADD", QUEUE, FIRST, &waiter]);
        }
        let proposal = (self.now_ms * 1000).to_string();
        self.world.arguments = [
            "exclusive",
            &owner,
            TTL_MS,
            &proposal,
            &waiter,
            FIRST,
            &held,
        ]
        .map(str::to_owned)
        .into();
        self.world
    }

    fn records(&mut self, value: Option<String>) {
        self.world.tells_all = self.below(4) > 0;
        if let Some(value) = value {
            self.set(&["SET", LOCK, &value]);
            let left = self.pick(&["60000", "3000000000"]);
            if self.below(8) > 0 {
                self.set(&["PEXPIRE", LOCK, left]);
            }
        } else if self.below(2) == 0 {
            self.set(&["RPUSH", LOCK, "of another library"]);
        }
        let counter = self.now_ms * 1000 - 2 + self.below(5);
        let entries = (self.below(6) > 0).then(|| ("f".to_owned(), counter));
        self.sorted(FENCE, entries.into_iter().collect());
        let length = self.below(14);
        let queue = (0..length).map(|_| (self.entry(), self.number()));
        let queue = queue.collect();
        self.sorted(QUEUE, queue);
        let mut offered = Vec::new();
        for name in (0..CLIENTS)
            .map(client)
            .chain(["gap", "called", "shows"].map(str::to_owned))
        {
            if self.below(8) == 0 {
                offered.push((name, self.about_now()));
            }
        }
        self.sorted(OFFERED, offered);
        let readers = (0..self.below(3)).map(|_| (self.owner(), self.about_now()));
        let readers = readers.collect();
        self.sorted(READERS, readers);
        match self.below(8) {
            0 => {}
            1 => self.set(&["SET", CARD, "of another type"]),
            _ => self.set(&["HSET", CARD, "mark", "7"]),
        }
    }

    /// A record of these entries; now and then one of another type is there.
    fn sorted(&mut self, key: &'static str, entries: Vec<(String, u64)>) {
        if self.below(40) == 0 {
            self.set(&["SET", key, "of another type"]);
        } else if !entries.is_empty() {
            for (entry, score) in entries {
                self.set(&["ZADD", key, &score.to_string(), &entry]);
            }
            self.set(&["PEXPIRE", key, &LASTS_MS.to_string()]);
        }
    }

    /// What the lock key holds but seldom; `None` is nothing that is a text.
    fn other_value(&mut self) -> Option<String> {
        let owner = self.owner();
        match self.below(7) {
            0 => Some(owner),
            1 => Some("leasehold:shared".to_owned()),
            2 => Some("leasehold:permits:3".to_owned()),
            3 => Some(format!("leasehold:broken:{owner}")),
            4 => Some(format!("leasehold:next:{}:{}", self.since(), self.entry())),
            _ => None,
        }
    }

    fn set(&mut self, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned());
        self.world.commands.push(words.collect());
    }

    /// Few, so that those who ask are often those who are there.
    fn owner(&mut self) -> String {
        let any = self.below(CLIENTS);
        let usual = self.usual.filter(|_| self.below(10) > 0);
        let (number, nonce) = (usual.unwrap_or(any), self.below(5));
        format!("{}.{nonce:032x}", client(number))
    }

    fn waiter(&mut self) -> String {
        self.owner()
    }

    fn entry(&mut self) -> String {
        let mark = self.pick(&["", "", "", "", "", "", "/s", "/p3"]);
        self.waiter() + mark
    }

    fn since(&mut self) -> String {
        self.number().to_string()
    }

    /// Few instants, so that some are the same.
    fn number(&mut self) -> u64 {
        1_700_000_000_000_000 + self.below(5)
    }

    fn about_now(&mut self) -> u64 {
        self.now_ms - 500 + self.pick(&[0, 499, 500, 501, 1200])
    }

    fn below(&self, bound: u64) -> u64 {
        self.entropy.next_u64() % bound
    }

    fn pick<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
