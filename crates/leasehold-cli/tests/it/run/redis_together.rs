//! Several locks as one, shared ones, permits, and the lease of the run around: on one server and on
//! five.

use leasehold_testkit::servers::{RedisSet, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::run::also::opposite_orders;
use crate::run::redis::{initialized_quorum, run, start};
use crate::support::harness::{Ended, Running, Sandbox};
use crate::support::processes::until_gone;

/// Runs `test` with one new server, and with five.
fn stores(test: impl Fn(&Sandbox, &RedisSet)) {
    for count in [1, 5] {
        let sandbox = Sandbox::new();
        let servers = match count {
            1 => RedisSet::start(1),
            several => initialized_quorum(&sandbox, several),
        };
        test(&sandbox, &servers);
    }
}

/// Runs `test` with lock files too.
fn all_stores(test: impl Fn(&Sandbox, &str)) {
    let sandbox = Sandbox::new();
    test(&sandbox, &sandbox.store());
    stores(|sandbox, servers| test(sandbox, &servers.urls().join(",")));
}

/// Starts the program in `store`.
fn at(sandbox: &Sandbox, store: &str, args: &[&str]) -> Running {
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_STORE", store).args(args);
    sandbox.spawn(command)
}

fn status(sandbox: &Sandbox, store: &str, name: &str) -> Value {
    let ended = at(sandbox, store, &["status", "--json", name]).wait();
    serde_json::from_str(&ended.stdout).unwrap()
}

fn ask(sandbox: &Sandbox, servers: &RedisSet, args: &[&str]) -> Ended {
    run(sandbox, &servers.urls(), args)
}

fn delete(servers: &RedisSet, name: &str) {
    for server in servers.iter() {
        server.command(&["DEL", name]);
    }
}

#[test]
fn opposite_orders_do_not_deadlock() {
    all_stores(|sandbox, store| opposite_orders(sandbox, 9, |args| at(sandbox, store, args)));
}

#[test]
fn one_lost_lock_frees_the_others() {
    stores(|sandbox, servers| {
        let args = ["--ttl", "4s", "b", "--also", "a", "--also", "c"];
        let holder = sandbox.hold_in(&servers.urls().join(","), &args, "pid");
        delete(servers, "c");
        until_gone(sandbox.pid_in("pid"));
        let ended = holder.wait();
        ended.fails(76, &[r#"lost lock "c": the lease vanished"#]);
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        let next = ask(sandbox, servers, &["run", "-n", "a", "--also", "b", "true"]);
        assert_eq!(next.code(), 0, "{next:?}");
    });
}

#[test]
fn shared_holders_run_together_and_exclude_others() {
    all_stores(|sandbox, store| {
        let run = |args: &[&str]| at(sandbox, store, args).wait();
        let first = sandbox.hold_in(store, &["-s", "deploy"], "pid");
        assert_eq!(run(&["run", "-n", "-s", "deploy", "true"]).code(), 0);
        run(&["run", "-n", "deploy", "true"]).fails(75, &["shared"]);
        assert_eq!(
            status(sandbox, store, "deploy")["holders"][0]["mode"],
            "shared"
        );
        sandbox.let_go();
        assert_eq!(first.wait().code(), 0);
        assert_eq!(run(&["run", "-n", "deploy", "true"]).code(), 0);
    });
}

#[test]
fn status_counts_the_permits_in_use() {
    all_stores(|sandbox, store| {
        let has_queue = !store.starts_with("file:");
        let permits = ["--permits", "2", "workers"];
        let holders = ["one", "two"].map(|name| sandbox.hold_in(store, &permits, name));
        let third = ["run", "--permits", "2", "workers", "touch", "ran"];
        let busy = [&["run", "-n"], &third[1..]].concat();
        at(sandbox, store, &busy)
            .wait()
            .fails(75, &["workers", "held by leasehold", "one of 2 permits"]);
        let third = at(sandbox, store, &third);
        third.says("waiting for lock \"workers\"");
        let mut text = String::new();
        // A client may register itself a moment after it takes its lock.
        until("the status names them all", || {
            text = at(sandbox, store, &["status", "workers"]).wait().stdout;
            let known = |pid: i32| text.contains(&format!("(pid {pid} on "));
            holders.iter().all(|holder| known(holder.pid())) && (!has_queue || known(third.pid()))
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "workers: 2 of 2 permits are held");
        assert!(
            lines[1..]
                .iter()
                .all(|line| line.contains(", one of 2 permits")),
            "{text}"
        );
        assert_eq!(lines.len(), if has_queue { 4 } else { 3 }, "{text}");
        let shown = status(sandbox, store, "workers");
        assert_eq!(shown["permits"], json!({"total": 2, "held": 2}));
        assert_eq!(
            (
                &shown["holders"][1]["mode"],
                &shown["holders"][1]["permits"]
            ),
            (&"permit".into(), &2.into())
        );
        if has_queue {
            assert!(lines[3].contains("1st in the queue"), "{text}");
            assert_eq!(shown["waiters"][0]["permits"], 2);
        }
        assert!(!sandbox.path("ran").exists());
        sandbox.let_go();
        assert_eq!(third.wait().code(), 0);
        assert!(holders.into_iter().all(|holder| holder.wait().code() == 0));
        assert!(sandbox.path("ran").exists());
        assert!(status(sandbox, store, "other")["permits"].is_null());
    });
}

#[test]
fn other_number_of_permits_is_64_at_once() {
    all_stores(|sandbox, store| {
        let run = |args: &[&str]| at(sandbox, store, args).wait();
        let _holder = sandbox.hold_in(store, &["--permits", "2", "workers"], "one");
        for options in [&["-n"][..], &[]] {
            let three = ["--permits", "3", "workers", "touch", "ran"];
            let ended = run(&[&["run"], options, &three].concat());
            ended.fails(64, &["workers", "in use with 2 permits, not 3"]);
        }
        assert!(!sandbox.path("ran").exists());
        run(&["run", "-n", "workers", "true"]).fails(75, &["one of 2 permits"]);
        run(&["run", "-n", "-s", "workers", "true"]).fails(75, &[]);
    });
}

#[test]
fn nested_run_uses_the_current_lease() {
    stores(|sandbox, servers| {
        let script = r#"echo $LEASEHOLD_FENCE
            "$LEASEHOLD" run --nested x -- sh -c 'echo $LEASEHOLD_FENCE; exit 3'; echo $?
            "$LEASEHOLD" run x -- true; echo $?"#;
        let ended = ask(sandbox, servers, &["run", "x", "--", "sh", "-c", script]);
        let lines: Vec<&str> = ended.stdout.lines().collect();
        assert_eq!(lines, [lines[0], lines[0], "3", "64"], "{ended:?}");
        let args = ["run", "-s", "x", "--", "sh", "-c", script];
        let ended = ask(sandbox, servers, &args);
        ended.fails(
            0,
            &["the outer run shares the lock", "held by an outer run"],
        );
    });
}

/// A lock of the same name under another prefix, or in another database, is another lock.
#[test]
fn nested_run_under_other_prefix_locks_itself() {
    stores(|sandbox, servers| {
        let mut elsewhere = vec!["?prefix=app:"];
        if servers.iter().count() == 1 {
            // A quorum is initialized in one database.
            elsewhere.extend(["/3", "/3?prefix=app:"]);
        }
        for behind in elsewhere {
            let urls = servers.urls();
            let urls: Vec<String> = urls.iter().map(|url| format!("{url}{behind}")).collect();
            let script = format!(
                r#""$LEASEHOLD" run --store '{}' --nested x -- sh -c 'echo $LEASEHOLD_RUN'; echo $?"#,
                urls.join(",")
            );
            let ended = ask(sandbox, servers, &["run", "x", "--", "sh", "-c", &script]);
            let lines: Vec<&str> = ended.stdout.lines().collect();
            let [outer_lock, "0"] = lines[..] else {
                panic!("{ended:?}")
            };
            assert_eq!(
                outer_lock.matches(r#""name":"x""#).count(),
                2,
                "{outer_lock}"
            );
        }
    });
}

#[test]
fn nested_run_under_a_lost_lease_is_76() {
    stores(|sandbox, servers| {
        // The next renewal, at which the outer run would notice, is far away.
        let script = r#"echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done
            "$LEASEHOLD" run --nested x -- touch ran; echo code-$?"#;
        let outer = ["run", "--ttl", "60s", "x", "--", "sh", "-c", script];
        let outer = start(sandbox, &servers.urls(), &outer);
        sandbox.pid_in("pid");
        delete(servers, "x");
        sandbox.let_go();
        let ended = outer.wait();
        assert_eq!(ended.stdout, "code-76\n", "{ended:?}");
        ended.fails(76, &["the outer run no longer holds it"]);
        assert!(!sandbox.path("ran").exists());
    });
}

#[test]
fn lock_delay_applies_after_unclean_ends_only() {
    stores(|sandbox, servers| {
        let delay = ["--ttl", "5s", "--lock-delay", "50s"];
        let clean = ask(
            sandbox,
            servers,
            &[&["run"], &delay[..], &["x", "true"]].concat(),
        );
        assert_eq!(clean.code(), 0);
        let too_long = ["--max-hold", "3s", "x", "sleep", "1000"];
        let lost = ask(
            sandbox,
            servers,
            &[&["run"], &delay[..], &too_long].concat(),
        );
        lost.fails(76, &["--max-hold reached"]);
        ask(sandbox, servers, &["run", "-n", "x", "true"]).fails(75, &["is held by leasehold"]);
        let holder = sandbox.hold_in(
            &servers.urls().join(","),
            &[&delay[..], &["y"]].concat(),
            "pid",
        );
        holder.signal(Signal::SIGKILL);
        until_gone(sandbox.pid_in("pid"));
        ask(sandbox, servers, &["run", "-w", "7s", "y", "true"]).fails(75, &["is held by"]);
    });
}
