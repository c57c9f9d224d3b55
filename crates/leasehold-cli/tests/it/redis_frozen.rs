//! Frozen servers, which take connections and answer nothing.

use std::cell::Cell;
use std::fs;
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

/// The shortest of three runs.
fn fastest(run: impl Fn()) -> Duration {
    let once = |_| {
        let began = SystemClock.now();
        run();
        SystemClock.now().since(began)
    };
    (0..3).map(once).min().unwrap()
}

/// How long each command takes.
fn times(sandbox: &Sandbox, names: &Cell<u32>) -> Vec<(&'static str, Duration)> {
    let succeeds = |line: &str| drop(sandbox.run(line).succeeds());
    let next = || {
        names.set(names.get() + 1);
        names.get()
    };
    let (mut times, handle) = (Vec::new(), sandbox.path("handle"));
    for verb in ["renew", "release"] {
        let took = fastest(|| {
            // The handle of the last run is still valid.
            let _ = fs::remove_file(&handle);
            succeeds(&format!("acquire --handle-file handle l{}", next()));
        });
        times.push(("acquire", took));
        times.push((verb, fastest_of(sandbox, verb, &next)));
    }
    times.push(("run", fastest(|| succeeds("run -n x true"))));
    times.push(("status", fastest(|| succeeds("status x"))));
    times.push(("ls", fastest(|| succeeds("ls"))));
    let request = || succeeds(&format!("once job{} -- true", next()));
    times.push(("once", fastest(request)));
    times.push(("replay", fastest(|| succeeds("once job -- true"))));
    times
}

/// How long `verb` takes with the handle of a lock that was just acquired.
fn fastest_of(sandbox: &Sandbox, verb: &str, next: &impl Fn() -> u32) -> Duration {
    let once = |_| {
        let lock = next();
        let line = format!("acquire --handle-file h{lock} l{lock}");
        sandbox.run(&line).succeeds();
        let began = SystemClock.now();
        let ended = sandbox.run(&format!("{verb} --handle-file h{lock}"));
        let took = SystemClock.now().since(began);
        ended.succeeds();
        took
    };
    (0..3).map(once).min().unwrap()
}

#[test]
fn frozen_minority_delays_no_command() {
    let (sandbox, servers) = Sandbox::on_durable_quorum(5);
    sandbox.run("once job -- true").succeeds();
    let names = Cell::new(0);
    let healthy = times(&sandbox, &names);
    servers[1].freeze();
    servers[3].freeze();
    let frozen = times(&sandbox, &names);
    for ((verb, healthy), (_, frozen)) in healthy.into_iter().zip(frozen) {
        let late = frozen.saturating_sub(healthy);
        assert!(late < DELAY_MAX, "{verb}: {healthy:?}, then {frozen:?}");
    }
    servers[1].thaw();
    servers[3].thaw();
}

#[test]
fn commands_that_show_servers_wait_a_second() {
    let (sandbox, servers) = Sandbox::on_quorum(5);
    servers[1].freeze();
    for (verb, code) in [("members", 0), ("doctor", 78)] {
        let took = fastest(|| {
            let shown = sandbox.run(verb);
            assert_eq!(shown.code(), code, "{shown:?}");
            let reason = "no answer within";
            let line = shown.stdout.lines().find(|it| it.contains(reason));
            assert!(line.is_some(), "{shown:?}");
            assert!(shown.stdout.contains(&id(&servers[1])), "{shown:?}");
        });
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
