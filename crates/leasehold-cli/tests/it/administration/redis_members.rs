//! Quorums of servers: initialized, shown, changed, and refused.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use serde_json::Value;

use crate::run::redis::{initialized_quorum, run, start};
use crate::support::harness::{Ended, PROGRAM, Sandbox};
use crate::support::pty::OnTerminal;

fn id(server: &RedisServer) -> String {
    format!("127.0.0.1:{}", server.port())
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// What `leasehold members` says of the members, in their order.
fn members(sandbox: &Sandbox, urls: &[String]) -> (i32, Value) {
    let ended = run(sandbox, urls, &["members", "--json"]);
    (ended.code(), json(&ended)["members"].clone())
}

fn has_member_record(server: &RedisServer) -> bool {
    let reply = server.command(&["EXISTS", "leasehold:member_record"]);
    format!("{reply:?}").contains('1')
}

#[test]
fn quorum_is_initialized_once_with_immediate_votes() {
    let sandbox = Sandbox::new();
    let mut urls = RedisSet::start(2);
    let durable = RedisServer::builder().durable().start();
    let all = [urls.urls(), vec![durable.url()]].concat();
    let shown = run(&sandbox, &all, &["members"]);
    assert_eq!(shown.code(), 69, "{shown:?}");
    assert!(shown.stdout.contains("run `leasehold init`"), "{shown:?}");
    assert!(!has_member_record(&durable), "looking initializes nothing");

    let initialized = run(&sandbox, &all, &["init"]);
    assert_eq!(
        (initialized.code(), &*initialized.stderr),
        (0, ""),
        "{initialized:?}"
    );
    let lines: Vec<&str> = initialized.stdout.lines().collect();
    assert!(
        lines[0].contains("(max_ttl 60s, clock_tolerance 250ms)"),
        "{initialized:?}"
    );
    assert_eq!(lines[1], format!("{}: not durable", id(&urls[0])));
    assert_eq!(lines[3], format!("{}: durable", id(&durable)));
    assert!(
        lines[4].contains("for 1m 1s after each restart. To make it durable, set appendonly yes")
    );
    run(&sandbox, &all, &["run", "-n", "x", "true"]).fails(0, &[]);
    let again = run(&sandbox, &all, &["init"]);
    assert_eq!((again.code(), &*again.stderr), (0, ""), "{again:?}");
    assert!(again.stdout.starts_with("nothing to do: "), "{again:?}");

    let (code, shown) = members(&sandbox, &all);
    assert_eq!(code, 0);
    for (member, is_durable) in shown.as_array().unwrap().iter().zip([false, false, true]) {
        assert_eq!(member["has_vote"], true, "{member}");
        assert_eq!(member["durable"], is_durable);
        assert_eq!(member["member_record"]["generation"], 1);
        assert_eq!(member["member_record"]["differs"], false);
        assert!(member["clock_offset_us"].as_i64().unwrap().abs() < 2_000_000);
    }
    for server in urls.iter_mut() {
        server.kill();
    }
    let shown = run(&sandbox, &all, &["members"]);
    assert_eq!(shown.code(), 69);
    assert!(
        shown
            .stdout
            .contains("1 of 3 servers have a vote, 2 needed"),
        "{shown:?}"
    );
}

fn configure(server: &RedisServer, words: &[&str]) {
    let answer = server.command(&[&["CONFIG"], words].concat());
    assert_eq!(answer, Reply::Status("OK".into()), "{words:?}");
}

/// Switches on the file with all changes, also for later restarts.
fn make_durable(server: &RedisServer) {
    configure(server, &["SET", "appendfsync", "always"]);
    configure(server, &["SET", "appendonly", "yes"]);
    configure(server, &["REWRITE"]);
    until("its first file is complete", || {
        let info = format!("{:?}", server.command(&["INFO", "persistence"]));
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
}

/// What `doctor` says of the restart of the first server, and of its file.
fn restart_and_persistence(sandbox: &Sandbox, urls: &[String]) -> [String; 2] {
    let report = json(&run(sandbox, urls, &["doctor", "--json"]));
    let checks = report["members"][0]["checks"].as_array().unwrap();
    ["restart", "persistence"].map(|id| {
        let check = checks.iter().find(|check| check["id"] == id).unwrap();
        format!("{} {}", check["found"], check["remedy"])
    })
}

#[test]
fn durability_set_while_running_starts_after_restart() {
    let sandbox = Sandbox::new();
    let mut servers = initialized_quorum(&sandbox, 3);
    let urls = servers.urls();
    servers.iter().for_each(make_durable);
    let once = ["once", "x", "--", "touch", "ran"];
    let named = format!("{} (only after its next restart)", id(&servers[0]));
    run(&sandbox, &urls, &once).fails(64, &["must outlive restarts", &named]);
    let (code, shown) = members(&sandbox, &urls);
    assert_eq!((code, &shown[0]["durable"]), (0, &false.into()), "{shown}");
    let table = run(&sandbox, &urls, &["members"]).stdout;
    assert!(table.contains("after restart"), "{table}");
    let [restart, persistence] = restart_and_persistence(&sandbox, &urls);
    assert!(restart.contains("has no vote for 1m 1s"), "{restart}");
    assert!(
        persistence.contains("not since it started"),
        "{persistence}"
    );
    assert!(persistence.contains("restart it"), "{persistence}");

    servers[0].restart();
    let (_, shown) = members(&sandbox, &urls);
    assert_eq!(shown[0]["durable"], true, "{shown}");
    assert_eq!(shown[0]["has_vote"], false, "{shown}");
    let [restart, _] = restart_and_persistence(&sandbox, &urls);
    assert!(restart.contains("has a vote again at once"), "{restart}");
}

#[test]
fn obstacles_to_init_are_named_before_writing() {
    let sandbox = Sandbox::new();
    let [mut dead, member, holder, free] = std::array::from_fn(|_| RedisServer::start());
    dead.kill();
    let script = "echo $$ > held; sleep 1000";
    let hold = ["run", "mine", "--", "sh", "-c", script];
    let held = start(&sandbox, &[holder.url()], &hold);
    sandbox.pid_in("held");
    let others = RedisSet::start(2);
    let other_quorum = [others.urls(), vec![member.url()]].concat();
    assert_eq!(run(&sandbox, &other_quorum, &["init", "--json"]).code(), 0);

    let urls = [&dead, &member, &holder, &free].map(RedisServer::url);
    run(&sandbox, &urls, &["init"]).fails(
        64,
        &[
            "nothing was written",
            &format!("{}: no connection", id(&dead)),
            &format!("{}: already belongs to the quorum ", id(&member)),
            &format!("{}: it holds lock \"mine\"", id(&holder)),
        ],
    );
    assert!(!has_member_record(&free) && !has_member_record(&holder));
    drop(held);
    let twice = [&free, &holder].map(RedisServer::url);
    let alias = format!("{}?id=other", free.url().replace("127.0.0.1", "localhost"));
    run(&sandbox, &[twice.as_slice(), &[alias]].concat(), &["init"])
        .fails(64, &["is the same server as", "other"]);
    let only_dead = [&dead, &free, &others[0]].map(RedisServer::url);
    others[0].command(&["FLUSHALL"]);
    run(&sandbox, &only_dead, &["init"]).fails(69, &[&id(&dead)]);
}

#[test]
fn single_redis_server_needs_no_initialization() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let shown = run(&sandbox, &[server.url()], &["members"]);
    assert_eq!(shown.code(), 0, "{shown:?}");
    assert!(
        shown.stdout.contains("1 of 1 servers have a vote"),
        "{shown:?}"
    );
}

#[test]
fn limits_are_checked_and_agreed_on() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 3);
    let urls = servers.urls();
    let run = |args: &[&str]| run(&sandbox, &urls, args);
    run(&["run", "--max-ttl", "2s", "--ttl", "2s", "x", "true"])
        .fails(64, &["max_ttl 2s", "clock_tolerance 250ms", "ten times"]);
    run(&["run", "--clock-tolerance", "1ms", "x", "true"])
        .fails(64, &["clock_tolerance 1ms", "at least 10ms"]);
    run(&["run", "--max-ttl", "2h", "x", "true"]).fails(64, &["max_ttl 7200s", "at most 3600s"]);
    run(&["run", "--max-ttl", "20s", "x", "true"]).fails(64, &["TTL 30s", "maximum, 20s", "--ttl"]);
    // What others agreed on before.
    let differing = [
        "run",
        "--max-ttl",
        "20s",
        "--ttl",
        "20s",
        "x",
        "touch",
        "ran",
    ];
    run(&differing).fails(
        64,
        &[
            "another quorum",
            "it has max_ttl 60s, this client max_ttl 20s",
        ],
    );
    assert!(!sandbox.path("ran").exists());
    let mut by_variable = sandbox.without_store();
    by_variable.env("LEASEHOLD_STORE", urls.join(","));
    by_variable.env("LEASEHOLD_CLOCK_TOLERANCE", "100ms");
    by_variable.args(["run", "x", "true"]);
    sandbox
        .spawn(by_variable)
        .wait()
        .fails(64, &["clock_tolerance 100ms"]);
    sandbox
        .run(&["run", "--max-ttl", "20s", "x", "true"])
        .fails(64, &["max_ttl applies to a quorum"]);
}

#[test]
fn differing_redis_quorum_is_64_with_both() {
    let sandbox = Sandbox::new();
    let mut servers = initialized_quorum(&sandbox, 5);
    let fewer = servers.urls()[..3].to_vec();
    let list = |count: usize| {
        let mut ids: Vec<String> = servers.iter().take(count).map(id).collect();
        ids.sort();
        ids.join(",")
    };
    let differing = format!(
        "another quorum (generation 1): it has {}, this client {}",
        list(5),
        list(3)
    );
    run(&sandbox, &fewer, &["run", "-n", "x", "true"]).fails(64, &[&differing]);
    servers[2].kill();
    run(&sandbox, &fewer, &["run", "-n", "x", "true"]).fails(64, &["another quorum"]);
    let (code, shown) = members(&sandbox, &fewer);
    assert_eq!(
        (code, &shown[0]["member_record"]["differs"]),
        (69, &true.into())
    );
}

#[test]
fn redis_quorum_grows_shrinks_and_advises() {
    let sandbox = Sandbox::new();
    let servers = RedisSet::start(4);
    let mut newcomer = RedisServer::builder().password("secret").start();
    let call = |urls: &[String], subcommand: &str, args: &[&str]| {
        let limits = [subcommand, "--max-ttl", "12s"];
        run(&sandbox, urls, &[&limits[..], args].concat())
    };
    let lock = |urls: &[String]| call(urls, "run", &["-n", "--ttl", "12s", "x", "true"]);
    let four = servers.urls();
    let initialized = call(&four, "init", &["--json"]);
    initialized.fails(0, &["an even number of servers"]);
    let said = json(&initialized);
    assert_eq!(
        (&said["max_ttl_ms"], &said["clock_tolerance_ms"]),
        (&12_000.into(), &250.into())
    );
    assert_eq!(said["members"][3]["id"], id(&servers[3]));
    assert_eq!(lock(&four).code(), 0);

    let hold = [
        "run",
        "--max-ttl",
        "12s",
        "--ttl",
        "12s",
        "mine",
        "--",
        "sh",
        "-c",
        "echo $$ > held; sleep 1000",
    ];
    let mut command = sandbox.leasehold();
    command.env("LEASEHOLD_STORE", four.join(",")).args(hold);
    let holder = sandbox.spawn(command);
    sandbox.pid_in("held");
    let grown = call(&four, "members", &["add", &newcomer.url()]);
    grown.fails(0, &["lose their locks", "ends their commands: mine"]);
    assert_eq!(holder.wait().code(), 76);
    let list = format!(
        "{},redis://***@127.0.0.1:{}",
        four.join(","),
        newcomer.port()
    );
    assert!(grown.stdout.contains(&list), "{grown:?}");
    assert!(!grown.stdout.contains("secret"), "{grown:?}");
    assert!(
        grown.stdout.contains("The next change is possible in 13s."),
        "{grown:?}"
    );
    lock(&four).fails(64, &["generation 2"]);

    let five = [four, vec![newcomer.url()]].concat();
    assert_eq!(lock(&five).code(), 0);
    let leaving = id(&newcomer);
    let early = call(&five, "members", &["remove", &leaving]);
    early.fails(64, &["changed recently"]);
    call(&five, "members", &["remove", "nobody"]).fails(64, &["nobody", &leaving]);
    newcomer.kill();
    let mut shrunk = early;
    until("the next change may be made", || {
        shrunk = call(&five, "members", &["remove", "--json", &leaving]);
        shrunk.code() == 0
    });
    let shrunk = json(&shrunk);
    assert_eq!(shrunk["members"].as_array().unwrap().len(), 4);
    assert_eq!(shrunk["next_change_in_ms"], 13_000);
    assert_eq!(lock(&servers.urls()).code(), 0);
}

#[test]
fn waiter_sees_how_long_members_lack_votes() {
    let sandbox = Sandbox::new();
    let servers = RedisSet::start(3);
    let urls = servers.urls();
    let limits = ["--max-ttl", "20s", "--ttl", "20s"];
    assert_eq!(
        run(&sandbox, &urls, &["init", "--max-ttl", "20s"]).code(),
        0
    );
    for server in [0, 1] {
        servers[server].command(&["FLUSHALL"]);
    }
    // First of all, since the wait that it is to show begins with it.
    let began = SystemClock.now();
    let wait = [&[PROGRAM, "run"], &limits[..], &["x", "--", "echo", "mine"]].concat();
    let mut terminal = OnTerminal::start_at(&sandbox, &urls.join(","), &wait);
    terminal.shows(r#"for lock "x": enough servers have a vote in "#);
    let wait = [&["run", "--json"], &limits[..], &["x", "true"]].concat();
    let program = start(&sandbox, &urls, &wait);
    program.says(r#""no_vote_for_ms":"#);

    let busy = [&["run", "-n"], &limits[..], &["x", "touch", "ran"]].concat();
    run(&sandbox, &urls, &busy).fails(69, &["1 of 3 servers have a vote", &id(&servers[0])]);
    let (code, shown) = members_within(&sandbox, &urls, "20s");
    assert_eq!(code, 69);
    assert_eq!(shown[2]["has_vote"], true, "{shown}");
    let again = shown[0]["no_vote_for_ms"].as_u64();
    assert!(again.is_some_and(|millis| millis <= 21_000), "{shown}");

    terminal.shows("mine");
    assert_eq!(terminal.exit_code(), 0);
    let waited = SystemClock.now().since(began);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    assert_eq!(program.wait().code(), 0);
    assert!(!sandbox.path("ran").exists());
}

fn members_within(sandbox: &Sandbox, urls: &[String], max_ttl: &str) -> (i32, Value) {
    let ended = run(sandbox, urls, &["members", "--json", "--max-ttl", max_ttl]);
    (ended.code(), json(&ended)["members"].clone())
}

#[test]
fn uninitialized_redis_quorum_says_what_to_do() {
    let sandbox = Sandbox::new();
    let mut servers = RedisSet::start(3);
    servers[2].kill();
    let ended = run(
        &sandbox,
        &servers.urls(),
        &["run", "-n", "x", "touch", "ran"],
    );
    ended.fails(
        69,
        &["leasehold init", &id(&servers[2]), "is not initialized"],
    );
    let program = start(&sandbox, &servers.urls(), &["run", "x", "true"]);
    program.says("leasehold init");
    drop(program);
    servers[2].restart();
    assert_eq!(run(&sandbox, &servers.urls(), &["init"]).code(), 0);
    assert_eq!(
        run(&sandbox, &servers.urls(), &["run", "-n", "x", "true"]).code(),
        0
    );
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn lost_server_beside_a_dead_one_is_readmitted() {
    let sandbox = Sandbox::new();
    let mut servers = RedisSet::start(3);
    let urls = servers.urls();
    let call = |subcommand: &[&str], args: &[&str]| {
        let args = [subcommand, &["--max-ttl", "5s"], args].concat();
        run(&sandbox, &urls, &args)
    };
    let try_lock = || call(&["run"], &["-n", "--ttl", "5s", "x", "true"]);
    assert_eq!(call(&["init"], &[]).code(), 0);
    let (lost, dead) = (id(&servers[1]), id(&servers[2]));
    servers[1].command(&["FLUSHALL"]);
    servers[2].kill();

    let way_out = format!("leasehold members readmit {lost}");
    try_lock().fails(69, &[&way_out, &format!("when {dead} answers")]);
    let shown = call(&["members"], &[]);
    assert!(shown.stdout.contains(&way_out), "{shown:?}");
    let found = call(&["doctor"], &[]);
    assert!(found.stdout.contains(&way_out), "{found:?}");

    call(&["members", "readmit"], &["other"]).fails(64, &["other", &lost]);
    call(&["members", "readmit"], &[&urls[2]]).fails(69, &[&dead]);
    let healthy = call(&["members", "readmit"], &[&urls[0]]);
    assert_eq!(healthy.code(), 0, "{healthy:?}");
    assert!(
        healthy.stdout.contains("nothing was written"),
        "{healthy:?}"
    );
    assert!(!has_member_record(&servers[1]));

    let done = call(&["members", "readmit"], &[&lost]);
    assert_eq!(done.code(), 0, "{done:?}");
    let first = format!("{lost} has a new record of this quorum, and no vote for 6s\n");
    assert!(done.stdout.starts_with(&first), "{done:?}");
    assert!(done.stdout.contains(&format!("silent: {dead}")), "{done:?}");
    let again = json(&call(&["members", "readmit", "--json"], &[&urls[1]]));
    assert_eq!(
        (&again["member"], &again["readmitted"]),
        (&lost.into(), &false.into())
    );
    until("the readmitted server has a vote", || {
        try_lock().code() == 0
    });
}
