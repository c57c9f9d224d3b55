//! Messages that others publish to a client's inbox.

use std::time::Duration;

use leasehold::env::Entropy as _;
use leasehold::look::Owner;
use leasehold::store::background;
use leasehold::{Client, Guard};
use leasehold_testkit::SeededEntropy;
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection};

use crate::support::{client, hold, is_busy, pass, permit, queued, set_user, share};

/// A user that may only publish.
struct Stranger(RespConnection);

impl Stranger {
    fn of(server: &RedisServer) -> Self {
        let rights = ["on", ">secret", "+publish", "allchannels"];
        set_user(server, "stranger", &rights);
        let mut connection = server.connect();
        let login = connection.call(&["AUTH", "stranger", "secret"]).unwrap();
        assert_eq!(login, Reply::Status("OK".into()));
        Self(connection)
    }

    fn publish(&mut self, client: &Client, message: &str) {
        let inbox = format!("leasehold:inbox:{}", client.id());
        let heard = self.0.call(&["PUBLISH", &inbox, message]).unwrap();
        assert_ne!(heard, Reply::Integer(0), "the client listens");
    }
}

/// Waits until the server ran what the client sent because of a message. The client reads the message before
/// the first answer, and sends the second request after that.
async fn has_acted(client: &Client) {
    pass(client, "unrelated").await;
    pass(client, "unrelated").await;
}

fn turn(owner: Owner, lock: &str) -> String {
    format!("turn {owner} {lock}")
}

#[tokio::test]
async fn turn_of_another_client_ends_no_lease() {
    let server = RedisServer::start();
    let (victim, messenger) = (client(&server), client(&server));
    let held = hold(&victim, "deploy").await;
    pass(&messenger, "unrelated").await;
    let mut stranger = Stranger::of(&server);
    stranger.publish(&messenger, &turn(held.owner(), "deploy"));
    has_acted(&messenger).await;
    assert!(is_busy(&messenger, "deploy").await, "{held:?} is valid");
    held.release().await.unwrap();
}

#[tokio::test]
async fn turn_of_a_detached_handle_ends_no_lease() {
    let server = RedisServer::start();
    let (maker, adopter) = (client(&server), client(&server));
    let held = hold(&maker, "deploy").await;
    let owner = held.owner();
    let handle = held.into_handle().unwrap();
    let adopted = adopter.adopt(&handle).await.unwrap();
    pass(&adopter, "unrelated").await;
    let mut stranger = Stranger::of(&server);
    for client in [&maker, &adopter] {
        stranger.publish(client, &turn(owner, "deploy"));
        has_acted(client).await;
    }
    assert!(is_busy(&maker, "deploy").await, "{adopted:?} is valid");
    adopted.release().await.unwrap();
}

/// What the server keeps for the locks of a test.
fn leases(server: &RedisServer) -> Vec<Reply> {
    let mut found = Vec::new();
    for lock in ["one", "two", "many", "handle"] {
        let tag = |kind: &str| format!("leasehold:{kind}:{{{lock}}}:{lock}");
        found.push(server.command(&["GET", lock]));
        found.push(server.command(&["ZRANGE", &tag("readers"), "0", "-1"]));
        found.push(server.command(&["HVALS", &tag("slots")]));
    }
    found
}

/// Random choices, the same in each run.
struct Chooser(SeededEntropy);

impl Chooser {
    fn below(&self, end: usize) -> usize {
        usize::try_from(self.0.next_u64() % end as u64).unwrap()
    }

    fn pick<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

const WORDS: &[&str] = &["turn", "turn", "turn", "turn", "later", ""];
const MARKS: &[&str] = &["", "", "", "/s", "/p2", "/p3", "/x"];
const LOCKS: &[&str] = &[
    "one",
    "two",
    "many",
    "handle",
    "queue",
    "unused",
    "leasehold:next",
    "",
];

/// A message from parts of real ones, some of them damaged.
fn message(random: &Chooser, owners: &[Owner]) -> String {
    let (word, mark, lock) = (random.pick(WORDS), random.pick(MARKS), random.pick(LOCKS));
    let mut message = format!("{word} {}{mark} {lock}", random.pick(owners));
    if random.below(8) == 0 {
        message.truncate(random.below(message.len()));
    }
    message
}

#[tokio::test]
async fn no_message_ends_a_lease() {
    let server = RedisServer::start();
    let random = Chooser(SeededEntropy::new(1));
    let (victim, other) = (client(&server), client(&server));
    let mut guards: Vec<Guard> = vec![
        hold(&victim, "one").await,
        share(&victim, "two").await,
        share(&other, "two").await,
        permit(&victim, "many", 2).await,
        permit(&other, "many", 2).await,
    ];
    let detached = hold(&victim, "handle").await;
    let mut owners: Vec<Owner> = guards.iter().map(Guard::owner).collect();
    owners.push(detached.owner());
    let handle = detached.into_handle().unwrap();
    guards.push(other.adopt(&handle).await.unwrap());
    let queue = hold(&victim, "queue").await;
    let waits = other.lock("queue").wait(Duration::from_secs(60)).acquire();
    let waits = background::spawn(waits);
    queued(&server, "queue", 1).await;
    for client in [&victim, &other] {
        owners.push(Owner::random(client.id(), &random.0));
    }
    owners.push(queue.owner());
    let before = leases(&server);
    let mut stranger = Stranger::of(&server);
    for _ in 0..2_000 {
        let client = *random.pick(&[&victim, &other]);
        stranger.publish(client, &message(&random, &owners));
    }
    has_acted(&victim).await;
    has_acted(&other).await;
    assert_eq!(leases(&server), before);
    queue.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
    for guard in guards {
        assert!(guard.is_valid(), "{guard:?}");
        let released = guard.release().await.unwrap();
        assert_eq!(released, leasehold::ReleaseOutcome::Released);
    }
}
