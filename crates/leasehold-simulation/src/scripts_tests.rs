use leasehold_fakeredis::{ConnectionId, FakeRedis};
use leasehold_redis::scripts::SCRIPTS;

const NOW: u64 = 1_763_637_400_000_000;

/// One client, and a server that runs its scripts.
struct Fixture {
    redis: FakeRedis,
    listener: ConnectionId,
    client: ConnectionId,
}

impl Fixture {
    fn new() -> Self {
        let mut redis = FakeRedis::new(0, NOW);
        let (listener, client) = (redis.connect(), redis.connect());
        let inbox = format!("leasehold:inbox:{}", &entry(0, "")[..16]);
        redis.execute(NOW, listener, &["SUBSCRIBE", &inbox]);
        let mut fixture = Self {
            redis,
            listener,
            client,
        };
        let until = (NOW / 1_000 + 60_000).to_string();
        fixture.command(&["ZADD", "present", &until, &entry(0, "")[..16]]);
        fixture
    }

    fn command(&mut self, command: &[&str]) {
        let reply = self.redis.execute(NOW, self.client, command);
        assert_eq!(reply.error_code(), None, "{reply:?}");
    }

    fn run(&mut self, script: &str, arguments: &[&str]) {
        let script = SCRIPTS.iter().find(|it| it.name == script);
        let text = script.expect("a script").text;
        let keys = ["present", "lock", "fence", "queue", "readers", "slots"];
        let head = ["EVAL", text, "6"];
        self.command(&[&head[..], &keys, arguments].concat());
    }

    fn acquire(&mut self, entry: &str, ticket: &str) {
        self.run("acquire", &[entry, "60000", "7", ticket, ""]);
    }

    /// Returns whether the server notified this waiter since the last call.
    fn is_notified(&mut self, entry: &str) -> bool {
        let bytes = self.redis.take_bytes(self.listener);
        String::from_utf8_lossy(&bytes).contains(&format!("turn {entry} lock"))
    }
}

/// Returns the entry of a request of the client.
fn entry(number: u32, mark: &str) -> String {
    format!("{:016x}.{number:032x}{mark}", 1)
}

/// The server drops it. The client has to learn that, and the answer to the release does not say it.
#[test]
fn successor_for_other_permits_is_notified() {
    let mut fixture = Fixture::new();
    let first = entry(1, "");
    let [second, third, fourth] = [2, 3, 4].map(|number| entry(number, "/p2"));
    let other = entry(5, "/p3");
    fixture.acquire(&first, "");
    let waiters = [&second, &third, &fourth, &other];
    for (waiter, ticket) in waiters.iter().zip(["10", "11", "12", "13"]) {
        fixture.acquire(waiter, ticket);
    }
    fixture.run("release", &[&first, "", "", "0"]);
    fixture.acquire(&second, "10");
    fixture.acquire(&third, "11");
    assert!(!fixture.is_notified(&other));
    let release = [&second, "", "", "0", &other, "60000", "7", "13", ""];
    fixture.run("release", &release);
    assert!(fixture.is_notified(&other));
}
