use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold_testkit::servers::{Reply, RespConnection};

/// Redlock as it is usually written: SET NX PX on every member, and a majority is enough. From then on the
/// holder relies on its own flag. It trusts every member, and knows no fence.
#[derive(Debug)]
pub(super) struct Naive {
    /// `None` if the member cannot be reached.
    members: Vec<Option<RespConnection>>,
    token: &'static str,
    from: Counted,
}

/// The instant from which the validity of a grant counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counted {
    FromAsking,
    /// As in libraries that set a flag, or start a timer, when they acquired the lock.
    FromTheAnswer,
}

/// A lock that a client believes it holds.
#[derive(Debug)]
pub(super) struct Belief {
    valid_until: BootInstant,
}

impl Naive {
    /// Returns a client of the members that listen on `ports`. `token` distinguishes its values.
    pub(super) fn new(token: &'static str, ports: &[u16], from: Counted) -> Self {
        let open = |port: &u16| {
            let mut member = RespConnection::open(*port).ok()?;
            member.call(&["PING"]).is_ok().then_some(member)
        };
        Self {
            members: ports.iter().map(open).collect(),
            token,
            from,
        }
    }

    pub(super) fn acquire(&mut self, lock: &str, ttl: Duration) -> Option<Belief> {
        let asked = self.ask(lock, ttl);
        let belief = self.hear(asked, ttl);
        if belief.is_none() {
            self.release(lock);
        }
        belief
    }

    /// Sends the requests, and returns when it did.
    pub(super) fn ask(&mut self, lock: &str, ttl: Duration) -> BootInstant {
        let asked = SystemClock.now();
        let millis = ttl.as_millis().to_string();
        for member in self.members.iter_mut().flatten() {
            let request = ["SET", lock, self.token, "NX", "PX", &millis];
            member.send(&request).expect("a connection");
        }
        asked
    }

    /// Takes in the answers.
    pub(super) fn hear(&mut self, asked: BootInstant, ttl: Duration) -> Option<Belief> {
        let mut votes = 0;
        for member in self.members.iter_mut().flatten() {
            let answer = member.receive().expect("an answer");
            votes += usize::from(answer == Reply::Status("OK".into()));
        }
        let from = match self.from {
            Counted::FromAsking => asked,
            Counted::FromTheAnswer => SystemClock.now(),
        };
        let belief = Belief {
            valid_until: from + ttl,
        };
        (votes > self.members.len() / 2 && belief.is_valid()).then_some(belief)
    }

    fn release(&mut self, lock: &str) {
        const COMPARE_AND_DELETE: &str =
            "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])";
        for member in self.members.iter_mut().flatten() {
            let request = ["EVAL", COMPARE_AND_DELETE, "1", lock, self.token];
            member.call(&request).expect("an answer");
        }
    }
}

impl Belief {
    /// Whether the holder believes it holds the lock at this instant.
    pub(super) fn is_valid(&self) -> bool {
        SystemClock.now() < self.valid_until
    }
}
