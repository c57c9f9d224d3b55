//! Runs random commands on the server in memory and on a real one, and compares everything that the two send.
#![allow(missing_docs, reason = "tests name themselves")]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod generator;
mod peer;
mod scripts;

use leasehold_fakeredis::{ConnectionId, FakeRedis, Reply};
use leasehold_testkit::servers::{RedisServer, Reply as Answer};

use self::generator::{ClientCommand, Generator};
use self::peer::{Peer, parse};

const SEQUENCES: u64 = 600;
const STEPS: u64 = 30;

/// How far two times to live may be apart, in milliseconds. The tests use longer times, which differ by
/// more than this.
const TOLERANCE_MS: u64 = 20_000;

/// A client of the two servers.
struct Client {
    real: Peer,
    fake: ConnectionId,
}

/// The two servers with the same clients, at the beginning of a sequence.
struct Pair {
    fake: FakeRedis,
    clients: Vec<Client>,
    now_us: u64,
    /// The commands so far, for the message of a failure.
    history: Vec<String>,
}

impl Pair {
    fn new(server: &RedisServer) -> Self {
        for command in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"]] {
            assert_eq!(server.command(command), Answer::Status("OK".into()));
        }
        let now_us = server_time(server);
        let mut fake = FakeRedis::new(1, now_us);
        let client = |_| Client {
            real: Peer::open(server.port()),
            fake: fake.connect(),
        };
        let mut clients: Vec<Client> = (0..generator::CLIENTS).map(client).collect();
        let hello = peer::request(&["HELLO".to_owned(), "3".to_owned()]);
        let resp3 = &mut clients[generator::RESP3];
        fake.receive(now_us, resp3.fake, &hello);
        resp3.real.send(&hello);
        // The replies name the connection, which differs.
        for hello in [
            parse(&fake.take_bytes(resp3.fake)).remove(0),
            resp3.real.read(),
        ] {
            assert!(matches!(hello, Reply::Map(_)), "{hello:?}");
        }
        Self {
            fake,
            clients,
            now_us,
            history: Vec::new(),
        }
    }

    /// Runs a command on both servers, and compares what its client has received since its previous command.
    fn run(&mut self, step: &ClientCommand) {
        self.now_us += 1000;
        self.history.push(format!("{step}"));
        let client = &mut self.clients[step.client];
        let request = peer::request(&step.words);
        self.fake.receive(self.now_us, client.fake, &request);
        let expected = parse(&self.fake.take_bytes(client.fake));
        client.real.send(&request);
        for fake in expected {
            let real = client.real.read();
            assert!(
                is_same(&fake, &real, step),
                "in memory: {fake:?}\nreal: {real:?}\nafter: {:#?}",
                self.history
            );
        }
    }

    /// Compares the data and the remaining messages. No other messages come before the reply to this.
    fn finish(&mut self) {
        self.run(&ClientCommand::new(0, &["DISCARD"]));
        self.run(&Generator::inspection());
        for client in 0..self.clients.len() {
            for words in [&["DISCARD"][..], &["UNSUBSCRIBE", "a"], &["PING", "end"]] {
                self.run(&ClientCommand::new(client, words));
            }
        }
    }
}

fn server_time(server: &RedisServer) -> u64 {
    let Answer::Array(parts) = server.command(&["TIME"]) else {
        panic!("TIME is answered with a list");
    };
    let number = |part: &Answer| match part {
        Answer::Bulk(text) => text.parse::<u64>().unwrap(),
        other => panic!("{other:?}"),
    };
    number(&parts[0]) * 1_000_000 + number(&parts[1])
}

/// Whether replies are the same, except for the texts of errors, the time between the two, and the order of
/// a scan.
fn is_same(fake: &Reply, real: &Reply, step: &ClientCommand) -> bool {
    let all = |fakes: &[Reply], reals: &[Reply]| {
        let mut pairs = fakes.iter().zip(reals);
        fakes.len() == reals.len() && pairs.all(|(fake, real)| is_same(fake, real, step))
    };
    match (fake, real) {
        (Reply::Error(_), Reply::Error(_)) => fake.error_code() == real.error_code(),
        (Reply::Integer(fake), Reply::Integer(real)) if step.has_times => {
            fake == real || (*fake > 0 && *real > 0 && fake.abs_diff(*real) < TOLERANCE_MS)
        }
        (Reply::Array(fakes), Reply::Array(reals)) if step.is_unordered => {
            let sorted = |replies: &[Reply]| {
                let mut texts: Vec<String> = replies.iter().map(|key| format!("{key:?}")).collect();
                texts.sort();
                texts
            };
            match (fakes.as_slice(), reals.as_slice()) {
                ([fake, Reply::Array(fakes)], [real, Reply::Array(reals)]) => {
                    fake == real && sorted(fakes) == sorted(reals)
                }
                _ => fakes == reals,
            }
        }
        (Reply::Array(fakes), Reply::Array(reals)) | (Reply::Push(fakes), Reply::Push(reals)) => {
            all(fakes, reals)
        }
        (Reply::Map(fakes), Reply::Map(reals)) => {
            let flat = |pairs: &[(Reply, Reply)]| {
                let items = pairs
                    .iter()
                    .flat_map(|(key, value)| [key.clone(), value.clone()]);
                items.collect::<Vec<_>>()
            };
            all(&flat(fakes), &flat(reals))
        }
        _ => fake == real,
    }
}

#[test]
fn random_commands_have_the_same_replies() {
    let server = RedisServer::start();
    for seed in 0..SEQUENCES {
        let mut pair = Pair::new(&server);
        let mut generator = Generator::new(seed, pair.now_us);
        pair.history.push(format!("seed {seed}"));
        for step in generator.opening() {
            pair.run(&step);
        }
        for _ in 0..STEPS {
            pair.run(&generator.step());
        }
        pair.finish();
    }
}
