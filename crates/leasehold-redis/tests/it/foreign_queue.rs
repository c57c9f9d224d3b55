//! A lock that clients of another library wait for, too. They know nothing about the queue.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use leasehold::Client;
use leasehold::clock::{Clock, SystemClock};
use leasehold_testkit::servers::{RedisPy, RedisServer, Reply, RespConnection, WorkPlan, until};
use pollster::block_on;

use crate::support::client;

#[expect(clippy::disallowed_methods, reason = "how long work takes, and a rest")]
fn sleep(span: Duration) {
    thread::sleep(span); // the work under the lock
}

/// Clients that wait for `deploy`, one after the other, each on a thread of its own.
struct WaitingClients {
    clients: Vec<Client>,
    /// The numbers of the clients that had the lock, in order.
    served: mpsc::Receiver<usize>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl WaitingClients {
    fn begin(server: &RedisServer, count: usize) -> Self {
        let (serve, served) = mpsc::channel();
        let clients: Vec<_> = (0..count).map(|_| client(server)).collect();
        let mut threads = Vec::new();
        for (number, client) in clients.iter().enumerate() {
            let (lock, serve) = (client.lock("deploy"), serve.clone());
            #[expect(clippy::disallowed_methods, reason = "each waits on its own")]
            threads.push(thread::spawn(move || {
                let guard = block_on(lock.acquire()).unwrap();
                serve.send(number).unwrap();
                block_on(guard.release()).unwrap();
            }));
            until("it is in the queue", || {
                block_on(client.waiters("deploy")).unwrap().len() == number + 1
            });
        }
        Self {
            clients,
            served,
            threads,
        }
    }

    /// Checks that all are served, in the order in which they began to wait.
    fn assert_served_in_order(self) {
        for thread in self.threads {
            thread.join().unwrap();
        }
        let order: Vec<usize> = self.served.try_iter().collect();
        assert_eq!(order, (0..self.clients.len()).collect::<Vec<_>>());
    }

    /// Returns how many commands each sends within `span`, by the server's clock.
    fn commands_in(&self, server: &RedisServer, span: Duration) -> Vec<usize> {
        let ids: Vec<String> = self
            .clients
            .iter()
            .map(|one| one.id().to_string())
            .collect();
        let mut counts = vec![0; ids.len()];
        let mut monitor = RespConnection::open(server.port()).unwrap();
        assert_eq!(
            monitor.call(&["MONITOR"]).unwrap(),
            Reply::Status("OK".into())
        );
        let mut end = None;
        loop {
            let Reply::Status(line) = monitor.receive().unwrap() else {
                panic!("MONITOR answers lines")
            };
            let (seconds, command) = line.split_once(' ').unwrap();
            let at = Duration::from_secs_f64(seconds.parse().unwrap());
            if at >= *end.get_or_insert(at + span) {
                return counts;
            }
            let is_sent = |id: &String| command.contains(id) && !command.contains(" lua] ");
            if let Some(number) = ids.iter().position(is_sent) {
                counts[number] += 1;
            }
        }
    }
}

#[test]
fn only_the_head_polls_a_redis_py_lock() {
    let server = RedisServer::start();
    let mut python = RedisPy::start(server.port());
    assert!(python.acquire("deploy"));
    let line = WaitingClients::begin(&server, 5);
    let counts = line.commands_in(&server, Duration::from_secs(4));
    println!("commands in four seconds: {counts:?}");
    // Ten a second; fewer while the machine stalls, and more for a while after that.
    assert!((10..600).contains(&counts[0]), "{counts:?}");
    // One a second at most, and one more because the span starts between two of them.
    assert!(counts[1..].iter().all(|count| *count <= 5), "{counts:?}");
    python.release("deploy");
    line.assert_served_in_order();
}

/// Does the same work as redis-py, in turn. Returns how long it waited each time.
fn work(server: &RedisServer, work: &WorkPlan<'_>) -> Vec<Duration> {
    let client = client(server);
    let mut counter = RespConnection::open(server.port()).unwrap();
    let mut waits = Vec::new();
    let end = SystemClock.now() + work.span;
    while SystemClock.now() < end {
        let began = SystemClock.now();
        let guard = block_on(client.lock(work.name).acquire()).unwrap();
        waits.push(SystemClock.now().since(began));
        let seen = match counter.call(&["GET", work.counter]).unwrap() {
            Reply::Bulk(seen) => seen.parse::<u64>().unwrap(),
            Reply::Nil => 0,
            other => panic!("{other:?}"),
        };
        // Five to twenty milliseconds.
        sleep(Duration::from_millis(5 + guard.fence().get() % 16));
        let next = (seen + 1).to_string();
        counter.call(&["SET", work.counter, &next]).unwrap();
        block_on(guard.release()).unwrap();
        sleep(work.pause);
    }
    waits
}

/// Returns the number of grants of each client, and the longest wait of all.
fn shares(waits: &[Vec<Duration>]) -> (Vec<usize>, Duration) {
    let longest = waits.iter().flatten().max().unwrap();
    (waits.iter().map(Vec::len).collect(), *longest)
}

#[test]
fn redis_py_and_waiters_share_a_busy_lock() {
    let server = RedisServer::start();
    let work = WorkPlan {
        name: "deploy",
        counter: "counter",
        span: Duration::from_secs(15),
        pause: Duration::from_millis(10),
    };
    let mut pythons: Vec<RedisPy> = (0..3).map(|_| RedisPy::start(server.port())).collect();
    // The waiters must have seen such a holder. Whether they meet one by themselves depends on chance.
    assert!(pythons[0].acquire(work.name));
    let (ours, theirs) = thread::scope(|scope| {
        let ours: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| self::work(&server, &work)))
            .collect();
        let queue = ["ZCARD", "leasehold:queue:{deploy}:deploy"];
        until("all wait", || server.command(&queue) == Reply::Integer(4));
        pythons[0].release(work.name);
        for python in &mut pythons {
            python.begin_work(&work);
        }
        let theirs: Vec<_> = pythons.iter_mut().map(RedisPy::worked).collect();
        let ours: Vec<_> = ours.into_iter().map(|one| one.join().unwrap()).collect();
        (ours, theirs)
    });
    let (our_grants, our_longest) = shares(&ours);
    let (their_grants, their_longest) = shares(&theirs);
    println!(
        "in the queue: {our_grants:?} grants, longest wait {our_longest:.1?}; \
         redis-py: {their_grants:?} grants, longest wait {their_longest:.1?}"
    );
    let total: usize = our_grants.iter().chain(&their_grants).sum();
    let counted = server.command(&["GET", "counter"]);
    assert_eq!(counted, Reply::Bulk(total.to_string()), "one at a time");
    assert!(our_grants.iter().all(|grants| *grants >= 10));
    assert!(their_grants.iter().all(|grants| *grants >= 2));
    assert!(our_longest < Duration::from_secs(8), "{our_longest:?}");
    // A wait as long as all of the work would have ended only with the work.
    assert!(their_longest < Duration::from_secs(14), "{their_longest:?}");
}

#[test]
fn expired_redis_py_lock_passes_to_the_head() {
    let server = RedisServer::start();
    let mut python = RedisPy::start(server.port());
    assert!(python.acquire_for("deploy", Duration::from_secs(6)));
    let began = SystemClock.now();
    let line = WaitingClients::begin(&server, 3);
    line.assert_served_in_order();
    let took = SystemClock.now().since(began);
    assert!(took > Duration::from_secs(5), "{took:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
}
