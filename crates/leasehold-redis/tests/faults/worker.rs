use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use leasehold::blocking::{Client, Election, Guard, Leadership, Lock};
use leasehold::clock::{Clock, SystemClock};
use leasehold::env::Entropy;
use leasehold_redis::TrustRules;
use leasehold_testkit::faults::ResourceClient;
use leasehold_testkit::{SecondProcess, SeededEntropy};

use crate::set::{self, MAX_TTL, TTL};

pub(crate) const VERB: &str = "--worker";

/// The lock that all of them share.
pub(crate) const LOCK: &str = "the-record";

/// How long a worker waits for the lock before it reports that it did not get it.
const WAIT: Duration = Duration::from_secs(1);

/// The argument that gives a worker its trust rules.
const RULES: [(&str, TrustRules); 2] = [
    ("enforced", TrustRules::Enforced),
    ("logged", TrustRules::Logged),
];

/// How a worker enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the lock.
    Lock,
    /// By being elected, which announces the worker, too.
    Election,
}

/// The argument that says how a worker enters.
const WAYS: [(&str, Way); 2] = [("lock", Way::Lock), ("election", Way::Election)];

/// Starts worker `number`, which uses the members at `urls` and trusts them under `rules`.
pub(crate) fn start(
    number: usize,
    seed: u64,
    resource: &Path,
    (rules, way): (TrustRules, Way),
    urls: &[String],
) -> SecondProcess {
    let resource = resource.display().to_string();
    let own = [
        VERB.into(),
        number.to_string(),
        seed.to_string(),
        resource,
        name_of(&RULES, rules),
        name_of(&WAYS, way),
    ];
    SecondProcess::start(own.into_iter().chain(urls.iter().cloned()))
}

fn name_of<T: Copy + PartialEq>(known: &[(&str, T)], value: T) -> String {
    let entry = known.iter().find(|entry| entry.1 == value);
    entry.expect("a known value").0.to_owned()
}

fn named<T: Copy>(known: &[(&str, T)], name: &str) -> T {
    let entry = known.iter().find(|entry| entry.0 == name);
    entry.expect("a known name").1
}

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let [number, seed, resource, rules, way, urls @ ..] = arguments else {
        panic!(
            "a worker needs a number, a seed, a resource, rules, a way and members: {arguments:?}"
        )
    };
    let rules = named(&RULES, rules);
    let client = Client::new(set::store(urls, MAX_TTL).trust(rules));
    let mut worker = Worker {
        number: number.parse().expect("a number"),
        chance: SeededEntropy::new(seed.parse().expect("a number")),
        resource: ResourceClient::connect(Path::new(resource)).expect("the resource"),
        contender: match named(&WAYS, way) {
            Way::Lock => Contender::Lock(client.lock(LOCK).ttl(TTL).wait(WAIT)),
            Way::Election => Contender::Election(client.election(LOCK).ttl(TTL).wait(WAIT)),
        },
    };
    let stop = SecondProcess::input_ended();
    while !stop.load(Ordering::SeqCst) {
        worker.round().expect("the resource");
    }
    ExitCode::SUCCESS
}

/// Adds one to the record again and again, each time under the lock, and reports everything to the resource.
struct Worker {
    number: usize,
    chance: SeededEntropy,
    resource: ResourceClient,
    contender: Contender,
}

/// What a worker uses to enter.
enum Contender {
    Lock(Lock),
    Election(Election),
}

/// What a worker has while it is inside.
enum Pass {
    Guard(Guard),
    Leadership(Leadership),
}

impl Contender {
    fn enter(&self, barging: bool) -> Result<Pass, leasehold::Error> {
        match self {
            Self::Lock(lock) => lock.clone().barging(barging).acquire().map(Pass::Guard),
            // A campaign waits its turn.
            Self::Election(election) => election.campaign().map(Pass::Leadership),
        }
    }
}

impl Pass {
    fn guard(&self) -> &leasehold::Guard {
        match self {
            Self::Guard(guard) => guard,
            Self::Leadership(leadership) => leadership.guard(),
        }
    }

    /// The result does not matter: the grants to other workers show whether the lease was released.
    fn leave(self) {
        match self {
            Self::Guard(guard) => drop(guard.release()),
            Self::Leadership(leadership) => drop(leadership.resign()),
        }
    }
}

impl Worker {
    fn round(&mut self) -> io::Result<()> {
        // A waiter in the queue asks rarely, so the renewer would notice a forgotten lease before any
        // waiter. A barging waiter asks all the time.
        let barging = self.chance.next_u64().is_multiple_of(2);
        let least = Duration::from_millis(2 + self.chance.next_u64() % 20);
        let asked = SystemClock.now();
        match self.contender.enter(barging) {
            Ok(pass) => {
                let worked = self.resource.work(self.number, asked, pass.guard(), least);
                pass.leave();
                worked
            }
            Err(error) => self.resource.refused(self.number, &error.to_string()),
        }
    }
}
