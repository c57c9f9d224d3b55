//! Quorums of servers: initialized, shown, changed, and refused.

use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, RedisSet, Reply, until};
use serde_json::{Value, json};

use crate::administration::doctor::found;
use crate::support::harness::{Sandbox, id};
use crate::support::program::{Ended, assert_fields};
use crate::support::pty::OnTerminal;

/// What `leasehold members` with `options` says of the members, in their order.
fn members(sandbox: &Sandbox, options: &str) -> (i32, Value) {
    let ended = sandbox.run(&format!("members --json {options}"));
    (ended.code(), ended.json_of_any()["members"].clone())
}

fn has_member_record(server: &RedisServer) -> bool {
    server.command(&["EXISTS", "leasehold:member_record"]) == Reply::Integer(1)
}

#[test]
fn quorum_is_initialized_once_with_immediate_votes() {
    let mut others = RedisSet::start(2);
    let durable = RedisServer::builder().durable().start();
    let sandbox = Sandbox::on(&[others.urls(), vec![durable.url()]].concat());
    let shown = sandbox.run("members");
    assert_eq!(shown.code(), 69, "{shown:?}");
    assert!(shown.stdout.contains("run `leasehold init`"), "{shown:?}");
    assert!(!has_member_record(&durable), "looking initializes nothing");

    let initialized = sandbox.run("init").succeeds();
    let lines: Vec<&str> = initialized.stdout.lines().collect();
    assert!(
        lines[0].contains("(max_ttl 1m, clock_tolerance 250ms)"),
        "{lines:?}"
    );
    assert_eq!(lines[1], format!("{}: not durable", id(&others[0])));
    assert_eq!(lines[3], format!("{}: durable", id(&durable)));
    let advice = "for 1m 1s after each restart. To make it durable, set appendonly yes";
    assert!(lines[4].contains(advice), "{lines:?}");
    sandbox.run("run -n x true").succeeds();
    let again = sandbox.run("init").succeeds();
    assert!(again.stdout.starts_with("nothing to do: "), "{again:?}");
    assert_eq!(initialized.stderr + &again.stderr, "");

    let (code, shown) = members(&sandbox, "");
    assert_eq!(code, 0);
    for (member, is_durable) in shown.as_array().unwrap().iter().zip([false, false, true]) {
        assert_fields(member, json!({"has_vote": true, "durable": is_durable}));
        let record = json!({"generation": 1, "differs": false});
        assert_fields(&member["member_record"], record);
        assert!(member["clock_offset_us"].as_i64().unwrap().abs() < 2_000_000);
    }
    others.iter_mut().for_each(RedisServer::kill);
    let shown = sandbox.run("members");
    assert_eq!(shown.code(), 69);
    let votes = "1 of 3 servers have a vote, 2 needed";
    assert!(shown.stdout.contains(votes), "{shown:?}");
}

/// Switches on the file with all changes, also for later restarts.
fn make_durable(server: &RedisServer) {
    for line in ["SET appendfsync always", "SET appendonly yes", "REWRITE"] {
        let command: Vec<&str> = ["CONFIG"].into_iter().chain(line.split(' ')).collect();
        assert_eq!(
            server.command(&command),
            Reply::Status("OK".into()),
            "{line}"
        );
    }
    until("its first file is complete", || {
        let info = format!("{:?}", server.command(&["INFO", "persistence"]));
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
}

#[test]
fn durability_set_while_running_starts_after_restart() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    servers.iter().for_each(make_durable);
    let first = || sandbox.run("doctor --json").json_of_any()["members"][0].clone();
    let named = format!("{} (only after its next restart)", id(&servers[0]));
    let once = sandbox.run("once x -- touch ran");
    once.fails(64, &["must outlive restarts", &named]);
    let (code, shown) = members(&sandbox, "");
    assert_eq!((code, &shown[0]["durable"]), (0, &json!(false)), "{shown}");
    let table = sandbox.run("members").stdout;
    assert!(table.contains("after restart"), "{table}");
    let (restart, persistence) = (found(&first(), "restart"), found(&first(), "persistence"));
    assert!(restart.contains("has no vote for 1m 1s"), "{restart}");
    for part in ["not since it started", "restart it"] {
        assert!(persistence.contains(part), "{persistence}");
    }

    servers[0].restart();
    let (_, shown) = members(&sandbox, "");
    assert_fields(&shown[0], json!({"durable": true, "has_vote": false}));
    let restart = found(&first(), "restart");
    assert!(restart.contains("has a vote again at once"), "{restart}");
}

#[test]
fn obstacles_to_init_are_named_before_writing() {
    let [mut dead, member, holder, free] = std::array::from_fn(|_| RedisServer::start());
    dead.kill();
    let held = Sandbox::on(&[holder.url()]);
    let held = (held.hold("mine", "held"), held);
    let others = RedisSet::start(2);
    let other_quorum = [others.urls(), vec![member.url()]].concat();
    let sandbox = Sandbox::on(&other_quorum);
    sandbox.run("init --json").succeeds();

    let urls = [&dead, &member, &holder, &free].map(RedisServer::url);
    let obstacles = [
        "nothing was written",
        &format!("{}: no connection", id(&dead)),
        &format!("{}: already belongs to the quorum ", id(&member)),
        &format!("{}: it holds lock \"mine\"", id(&holder)),
    ];
    sandbox.run_at(&urls, "init").fails(78, &obstacles);
    assert!(!has_member_record(&free) && !has_member_record(&holder));
    drop(held);
    let alias = format!("{}?id=other", free.url().replace("127.0.0.1", "localhost"));
    let twice = sandbox.run_at(&[free.url(), holder.url(), alias], "init");
    twice.fails(78, &["is the same server as", "other"]);
    let only_dead = [&dead, &free, &others[0]].map(RedisServer::url);
    others[0].command(&["FLUSHALL"]);
    sandbox.run_at(&only_dead, "init").fails(69, &[&id(&dead)]);
}

#[test]
fn single_redis_server_needs_no_initialization() {
    let (sandbox, _server) = Sandbox::on_redis();
    let shown = sandbox.run("members").succeeds().stdout;
    assert!(shown.contains("1 of 1 servers have a vote"), "{shown}");
}

#[test]
fn init_is_fine_where_nothing_is_needed() {
    let folder = Sandbox::new();
    for url in [
        folder.store(),
        "etcd://127.0.0.1:1",
        "zk://127.0.0.1:1",
        "redis://127.0.0.1:1",
        "redis://127.0.0.1:1,redis://127.0.0.1:2",
    ] {
        let sandbox = Sandbox::on(&[url.into()]);
        let done = sandbox.run("init").succeeds().stdout;
        assert!(done.starts_with("nothing to do: "), "{url}: {done}");
        assert!(
            done.ends_with(" needs no initialization\n"),
            "{url}: {done}"
        );
        assert!(sandbox.run("init --json").json()["store"].is_string());
        sandbox
            .run("init --max-ttl 5s")
            .fails(64, &["are for a quorum"]);
    }
    let refused = folder.run_without_store(&[], "init");
    refused.fails(64, &["no store is configured"]);
}

#[test]
fn init_checks_the_limits() {
    let servers = RedisSet::start(3);
    let sandbox = Sandbox::on(&servers.urls());
    for (limits, reason) in [
        (
            "--max-ttl 2s",
            &["max_ttl 2s", "clock_tolerance 250ms", "ten times"][..],
        ),
        (
            "--clock-tolerance 1ms",
            &["clock_tolerance 1ms", "at least 10ms"],
        ),
        ("--max-ttl 2h", &["max_ttl 2h", "at most 1h"]),
    ] {
        let ended = sandbox.run(&format!("init {limits}"));
        ended.fails(64, reason);
    }
    let shown = sandbox.run("members --json");
    assert_eq!(shown.code(), 69);
    assert_eq!(shown.json_of_any()["initialized"], false);
    let elsewhere = sandbox.run("run --max-ttl 20s x true");
    elsewhere.fails(64, &["--max-ttl"]);
}

#[test]
fn quiet_run_does_not_name_a_server_that_is_down() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    servers[1].kill();
    let loud = sandbox.run("run x true").succeeds();
    assert!(loud.stderr.contains("Connection refused"), "{loud:?}");
    let quiet = sandbox.run("run -q x true").succeeds();
    assert_eq!(quiet.stderr, "");
    servers[2].kill();
    let failed = sandbox.run("run -q -n x true");
    failed.fails(69, &["Connection refused"]);
}

#[test]
fn default_ttl_fits_the_limits_of_the_quorum() {
    let (sandbox, _servers) = Sandbox::on_initialized(RedisSet::start(3), "--max-ttl 5s");
    sandbox.run("run x true").succeeds();
    sandbox.run("run -n --also y x true").succeeds();
    sandbox.run("elect --value here x true").succeeds();
    let held = sandbox.run("acquire --json z").succeeds();
    assert_eq!(held.json()["ttl_ms"], 5_000);
    let remedy = ["2s 500ms to 5s", "--ttl, LEASEHOLD_TTL, or"];
    sandbox.run("run --ttl 30s x true").fails(64, &remedy);
    let limits = "--max-ttl 90s --clock-tolerance 4s";
    let (sandbox, _slow) = Sandbox::on_initialized(RedisSet::start(3), limits);
    let held = sandbox.run("acquire --json z").succeeds();
    assert_eq!(held.json()["ttl_ms"], 40_000, "30s would be too short");
}

#[test]
fn clients_learn_limits_from_the_servers() {
    let limits = "--max-ttl 90s --clock-tolerance 2s";
    let (sandbox, _servers) = Sandbox::on_initialized(RedisSet::start(3), limits);
    sandbox.run("run --ttl 90s -n x true").succeeds();
    for (ttl, reason) in [
        ("100s", "TTL 1m 40s is out of bounds"),
        ("15s", "this quorum allows 20s to 1m 30s"),
    ] {
        let ended = sandbox.run(&format!("run --ttl {ttl} x touch ran"));
        ended.fails(64, &[reason]);
    }
    assert!(!sandbox.path("ran").exists());
    let shown = sandbox.run("members --json").json();
    let stated = [&shown["max_ttl_ms"], &shown["clock_tolerance_ms"]];
    assert_eq!(stated, [&json!(90_000), &json!(2_000)]);
    let again = sandbox.run(&format!("init {limits}")).succeeds();
    assert!(again.stdout.starts_with("nothing to do: "), "{again:?}");
    let other = sandbox.run("init --max-ttl 20s");
    let page = "docs/runbooks/change-the-limits.md";
    other.fails(64, &["max_ttl 1m 30s", "cannot become 20s", page]);
}

#[test]
fn differing_redis_quorum_is_78_with_both() {
    let (all, mut servers) = Sandbox::on_quorum(5);
    let fewer = Sandbox::on(&servers.urls()[..3]);
    let list = |count: usize| {
        let mut ids: Vec<String> = servers.iter().take(count).map(id).collect();
        ids.sort();
        ids.join(",")
    };
    let lists = format!("it has {}, this client {}", list(5), list(3));
    let differing = format!("another quorum (generation 1): {lists}");
    fewer.run("run -n x true").fails(78, &[&differing]);
    servers[2].kill();
    fewer.run("run -n x true").fails(78, &["another quorum"]);
    let (code, shown) = members(&fewer, "");
    let record = &shown[0]["member_record"];
    assert_eq!((code, &record["differs"]), (69, &json!(true)));
    drop(all);
}

#[test]
fn redis_quorum_grows_shrinks_and_advises() {
    let servers = RedisSet::start(4);
    let mut newcomer = RedisServer::builder().password("secret").start();
    let four = Sandbox::on(&servers.urls());
    let five = Sandbox::on(&[servers.urls(), vec![newcomer.url()]].concat());
    let lock = |sandbox: &Sandbox| sandbox.run("run --ttl 12s -n x true");
    let initialized = four.run("init --max-ttl 12s --json");
    initialized.fails(0, &["an even number of servers"]);
    let said = initialized.json();
    assert_fields(
        &said,
        json!({"max_ttl_ms": 12_000, "clock_tolerance_ms": 250}),
    );
    assert_eq!(said["members"][3]["id"], id(&servers[3]));
    lock(&four).succeeds();

    let holder = four.hold("--ttl 12s mine", "held");
    let add = |options: &str| {
        let url = newcomer.url();
        four.run(&format!("members add {options} {url}"))
    };
    let refused = add("");
    refused.fails(
        75,
        &["\"mine\" held by ", "would lose their locks", "--yes"],
    );
    let shown = add("--dry-run").succeeds().stdout;
    assert!(
        shown.contains("would be lost: \"mine\" held by "),
        "{shown}"
    );
    assert!(!has_member_record(&newcomer));
    let grown = add("--yes").succeeds();
    assert_eq!(holder.wait().code(), 76);
    let list = format!("{},redis://***@{}", four.store(), id(&newcomer));
    let lost = "They lose the locks they hold: \"mine\" held by ";
    for part in [&list, lost, "The next change is possible in 13s."] {
        assert!(grown.stdout.contains(part), "{grown:?}");
    }
    assert!(!grown.stdout.contains("secret"), "{grown:?}");
    lock(&four).fails(78, &["generation 2"]);

    lock(&five).succeeds();
    let leaving = id(&newcomer);
    let remove = |args: &str| five.run(&format!("members remove {args}"));
    for options in ["", "--dry-run "] {
        let early = remove(&format!("{options}{leaving}"));
        early.fails(69, &["got this quorum's record", "the quorum was changed"]);
    }
    remove("nobody").fails(64, &["nobody", &leaving]);
    newcomer.kill();
    let mut shrunk: Option<Ended> = None;
    until("the next change may be made", || {
        let ended = shrunk.insert(remove(&format!("--json {leaving}")));
        ended.code() == 0
    });
    let shrunk = shrunk.unwrap().json();
    assert_eq!(shrunk["members"].as_array().unwrap().len(), 4);
    assert_eq!(shrunk["next_change_in_ms"], 13_000);
    lock(&four).succeeds();
}

#[test]
fn replaced_server_costs_no_lock() {
    let (former, servers) = Sandbox::on_initialized(RedisSet::start(3), "--max-ttl 3s");
    let new = RedisServer::start();
    let holder = former.hold("--ttl 3s mine", "held");
    let replace = |options: &str| {
        let (old, new) = (id(&servers[0]), new.url());
        former.run(&format!("members replace {options} {old} {new}"))
    };
    let itself = format!("{} {}", id(&servers[0]), servers[0].url());
    let itself = former.run(&format!("members replace {itself}"));
    assert!(
        itself.stderr.contains("leads to the former server"),
        "{itself:?}"
    );
    let url = format!("{}?id={}", new.url(), id(&servers[0]));
    let shown = replace("--dry-run").succeeds().stdout;
    assert!(shown.contains(&url), "{shown}");
    assert!(!has_member_record(&new));
    let done = replace("--json").json();
    assert_fields(&done, json!({"dry_run": false, "no_vote_for_ms": 4_000}));
    replace("").succeeds();

    let mut urls = servers.urls();
    urls[0] = url;
    let latter = Sandbox::on(&urls);
    until("the new server has a vote", || {
        let (_, shown) = members(&latter, "");
        shown[0]["has_vote"] == json!(true)
    });
    let (code, shown) = members(&former, "");
    assert_eq!((code, &shown[0]["has_vote"]), (0, &json!(false)));
    let doctor = latter.run("doctor").stdout;
    let moved = format!("); {} is at {}\n", id(&servers[0]), id(&new));
    assert!(doctor.contains(&moved), "{doctor}");
    latter.run("run --ttl 3s -n mine true").fails(75, &[]);
    former.finish(holder);
    latter.run("run --ttl 3s mine true").succeeds();
    former.run("run --ttl 3s mine true").succeeds();
}

#[test]
fn silent_server_is_replaced_if_it_is_gone() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    let new = RedisServer::start();
    servers[1].kill();
    let dead = id(&servers[1]);
    let replace =
        |options: &str| sandbox.run(&format!("members replace {options} {dead} {}", new.url()));
    replace("").fails(69, &["does not answer", "--gone"]);
    assert!(!has_member_record(&new));
    let done = replace("--gone").succeeds().stdout;
    assert!(done.contains("not even an empty one"), "{done}");
    assert!(has_member_record(&new));
}

#[test]
fn waiter_sees_how_long_members_lack_votes() {
    let (sandbox, servers) = Sandbox::on_initialized(RedisSet::start(3), "--max-ttl 20s");
    for server in [0, 1] {
        servers[server].command(&["FLUSHALL"]);
    }
    // First of all, since the wait that it is to show begins with it.
    let began = SystemClock.now();
    let run = "run --ttl 20s x -- echo mine";
    let mut terminal = OnTerminal::leasehold(&sandbox, run);
    terminal.shows(r#" for "x": enough servers have a vote in "#);
    let program = sandbox.start("run --ttl 20s --json x true");
    program.says(r#""no_vote_for_ms":"#);

    let busy = sandbox.run("run --ttl 20s -n x touch ran");
    busy.fails(69, &["1 of 3 servers have a vote", &id(&servers[0])]);
    let (code, shown) = members(&sandbox, "");
    assert_eq!((code, &shown[2]["has_vote"]), (69, &json!(true)), "{shown}");
    let again = shown[0]["no_vote_for_ms"].as_u64();
    assert!(again.is_some_and(|millis| millis <= 21_000), "{shown}");

    terminal.shows("mine");
    assert_eq!(terminal.exit_code(), 0);
    let waited = SystemClock.now().since(began);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    program.wait().succeeds();
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn uninitialized_redis_quorum_says_what_to_do() {
    let mut servers = RedisSet::start(3);
    let sandbox = Sandbox::on(&servers.urls());
    servers[2].kill();
    let refused = sandbox.run("run -n x touch ran");
    let reason = ["leasehold init", &id(&servers[2]), "is not initialized"];
    refused.fails(69, &reason);
    let program = sandbox.start("run x true");
    program.says("leasehold init");
    drop(program);
    servers[2].restart();
    sandbox.run("init").succeeds();
    sandbox.run("run -n x true").succeeds();
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn lost_server_beside_a_dead_one_is_readmitted() {
    let (sandbox, mut servers) = Sandbox::on_initialized(RedisSet::start(3), "--max-ttl 5s");
    let try_lock = || sandbox.run("run --ttl 5s -n x true");
    let readmit = |args: &str| sandbox.run(&format!("members readmit {args}"));
    let (lost, dead) = (id(&servers[1]), id(&servers[2]));
    servers[1].command(&["FLUSHALL"]);
    servers[2].kill();

    let way_out = format!("leasehold members readmit {lost}");
    try_lock().fails(69, &[&way_out, &format!("when {dead} answers")]);
    for shown in ["members", "doctor"] {
        let shown = sandbox.run(shown).stdout;
        assert!(shown.contains(&way_out), "{shown}");
    }
    readmit("other").fails(64, &["other", &lost]);
    readmit(&servers[2].url()).fails(69, &[&dead]);
    let healthy = readmit(&servers[0].url()).succeeds().stdout;
    assert!(healthy.contains("nothing was written"), "{healthy}");
    assert!(!has_member_record(&servers[1]));

    let done = readmit(&lost).succeeds().stdout;
    let first = format!("{lost} has a new record of this quorum, and no vote for 6s\n");
    assert!(done.starts_with(&first), "{done}");
    assert!(done.contains(&format!("silent: {dead}")), "{done}");
    let again = readmit(&format!("--json {}", servers[1].url())).json();
    assert_fields(&again, json!({"member": lost, "readmitted": false}));
    until("the readmitted server has a vote", || {
        try_lock().code() == 0
    });
}
