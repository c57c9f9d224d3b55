//! Frozen servers, which take connections and answer nothing.

use std::cell::Cell;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use nix::sys::signal::Signal;

use crate::support::harness::{Sandbox, id};
use crate::support::program::sh;

/// How much longer a command may take while two of five servers are frozen. The waits that it must not include
/// are 300 ms and more.
const DELAY_MAX: Duration = Duration::from_millis(250);

/// The most that one server may delay a command that shows the state of each server.
const SHOWING_MAX: Duration = Duration::from_millis(2_500);

/// How often a command runs at most. If it includes a wait, each of its runs does.
const RUNS_MAX: u32 = 30;

/// The shortest of three runs, or of more while none is shorter than `quick`: the machine may be busy.
fn fastest(quick: Duration, mut took: impl FnMut() -> Duration) -> Duration {
    let mut shortest = Duration::MAX;
    for run in 0..RUNS_MAX {
        shortest = shortest.min(took());
        if run >= 2 && shortest < quick {
            break;
        }
    }
    shortest
}

fn time(run: impl FnOnce()) -> Duration {
    let began = SystemClock.now();
    run();
    SystemClock.now().since(began)
}

/// A command, and how long it takes once.
type Timed<'a> = (&'static str, Box<dyn Fn() -> Duration + 'a>);

fn commands<'a>(sandbox: &'a Sandbox, names: &'a Cell<u32>) -> Vec<Timed<'a>> {
    let succeeds = |line: &str| drop(sandbox.run(line).succeeds());
    let next = || {
        names.set(names.get() + 1);
        names.get()
    };
    let acquire = move |lock: u32| succeeds(&format!("acquire --handle-file h{lock} l{lock}"));
    let with_handle = move |verb: &'static str| {
        let lock = next();
        acquire(lock);
        time(|| succeeds(&format!("{verb} --handle-file h{lock}")))
    };
    vec![
        ("acquire", Box::new(move || time(|| acquire(next())))),
        ("renew", Box::new(move || with_handle("renew"))),
        ("release", Box::new(move || with_handle("release"))),
        ("run", Box::new(move || time(|| succeeds("run -n x true")))),
        ("status", Box::new(move || time(|| succeeds("status x")))),
        ("ls", Box::new(move || time(|| succeeds("ls")))),
        (
            "once",
            Box::new(move || time(|| succeeds(&format!("once job{} -- true", next())))),
        ),
        (
            "replay",
            Box::new(move || time(|| succeeds("once job -- true"))),
        ),
    ]
}

#[test]
fn frozen_minority_delays_no_command() {
    let (sandbox, servers) = Sandbox::on_durable_quorum(5);
    sandbox.run("once job -- true").succeeds();
    let names = Cell::new(0);
    let commands = commands(&sandbox, &names);
    let healthy: Vec<_> = commands
        .iter()
        .map(|(_, took)| fastest(Duration::MAX, took))
        .collect();
    servers[1].freeze();
    servers[3].freeze();
    for ((verb, took), healthy) in commands.iter().zip(healthy) {
        let limit = healthy + DELAY_MAX;
        let frozen = fastest(limit, took);
        assert!(frozen < limit, "{verb}: {healthy:?}, then {frozen:?}");
    }
    servers[1].thaw();
    servers[3].thaw();
}

#[test]
fn commands_that_show_servers_wait_a_second() {
    let (sandbox, servers) = Sandbox::on_quorum(5);
    servers[1].freeze();
    for (verb, code) in [("members", 0), ("doctor", 78)] {
        let show = || {
            let shown = sandbox.run(verb);
            assert_eq!(shown.code(), code, "{shown:?}");
            let reason = "no answer within";
            let line = shown.stdout.lines().find(|it| it.contains(reason));
            assert!(line.is_some(), "{shown:?}");
            assert!(shown.stdout.contains(&id(&servers[1])), "{shown:?}");
        };
        let took = fastest(SHOWING_MAX, || time(show));
        assert!(took < SHOWING_MAX, "{verb}: {took:?}");
    }
    servers[1].thaw();
}

/// The names of a server's keys for locks and their waiters.
fn left_at(server: &RedisServer) -> Vec<Reply> {
    let patterns = ["x", "leasehold:queue:*"];
    let keys = patterns.map(|pattern| server.command(&["KEYS", pattern]));
    let names = keys.into_iter().flat_map(|keys| match keys {
        Reply::Array(names) => names,
        other => panic!("{other:?}"),
    });
    names.collect()
}

fn until_nothing_is_left(servers: &RedisSet) {
    for server in servers.iter() {
        until("no lock and no queue", || left_at(server).is_empty());
    }
}

/// The kernel has what a process wrote to a frozen server, and the server executes it later. The holder's first request
/// frees nothing there while the other process waits.
#[test]
fn thawed_server_has_nothing_of_ended_processes() {
    for waiter_ends_first in [true, false] {
        let (sandbox, servers) = Sandbox::on_quorum(5);
        sandbox.gate("gate");
        // Longer than the test waits.
        let holder = sandbox.start(&sh("run --ttl 60s x", "echo $$ > pid; read line < gate"));
        sandbox.pid_in("pid");
        let waiter = sandbox.start("run --ttl 60s x true");
        for server in servers.iter() {
            until("lock and waiter", || left_at(server).len() == 2);
        }
        servers[1].freeze();
        servers[3].freeze();
        if waiter_ends_first {
            waiter.signal(Signal::SIGTERM);
            assert_eq!(waiter.wait().code(), 143);
            sandbox.open_gate("gate");
        } else {
            sandbox.open_gate("gate");
            waiter.wait().succeeds();
        }
        holder.wait().succeeds();
        servers[1].thaw();
        servers[3].thaw();
        until_nothing_is_left(&servers);
    }
}

#[test]
fn server_frozen_from_the_start_gets_nothing() {
    let (sandbox, servers) = Sandbox::on_quorum(5);
    servers[1].freeze();
    servers[3].freeze();
    let handle = sandbox.run("acquire --ttl 60s x").succeeds().stdout;
    sandbox.run("run -w 1s x true").fails(75, &[]);
    let releasing = sandbox.start_with(("LEASEHOLD_HANDLE", handle.trim()), "release");
    releasing.wait().succeeds();
    servers[1].thaw();
    servers[3].thaw();
    until_nothing_is_left(&servers);
}
