//! Commands that are run once, on one Redis server and on five durable ones.

use leasehold_testkit::servers::{RedisServer, RedisSet, until};
use nix::sys::signal::Signal;

use crate::results::once::assert_one_result;
use crate::run::redis::{initialized_quorum, run, start};
use crate::support::harness::Sandbox;
use crate::support::processes::{guardian_of, until_gone, until_stopped};

/// Once it may pass the gate: notes that it ran, and says so.
const GATED: &str = r#"
echo $$ > "pid-$1"
read line < "gate-$1"
echo "$LEASEHOLD_FENCE" >> ran
echo "done under $LEASEHOLD_FENCE""#;

/// The command of the attempt `number`, the same request for all.
fn attempt(number: &str) -> [&str; 12] {
    [
        "once",
        "--ttl",
        "3s",
        "--payload",
        "EUR 12",
        "pay/17",
        "--",
        "sh",
        "-c",
        GATED,
        "sh",
        number,
    ]
}

fn durable_set(sandbox: &Sandbox, count: usize) -> RedisSet {
    let servers = RedisSet::start_each(count, &RedisServer::builder().durable());
    run(sandbox, &servers.urls(), &["init"]).fails(0, &[]);
    servers
}

#[test]
fn result_outlives_restarts_of_all_servers() {
    let sandbox = Sandbox::new();
    let mut servers = durable_set(&sandbox, 5);
    let urls = servers.urls();
    let script = "echo x >> ran; echo \"done under $LEASEHOLD_FENCE\" | tee -a log";
    let command = ["once", "pay/17", "--", "sh", "-c", script];
    let first = run(&sandbox, &urls, &command);
    for server in servers.iter_mut().take(2) {
        server.kill();
    }
    let with_three = run(&sandbox, &urls, &command);
    for server in servers.iter_mut() {
        server.restart();
    }
    let restarted = run(&sandbox, &urls, &command);
    for ended in [&first, &with_three, &restarted] {
        assert_eq!(ended.code(), 0, "{ended:?}");
        assert_eq!(ended.stdout, first.stdout);
    }
    assert_eq!(sandbox.lines_in("ran").len(), 1);
    for server in servers.iter_mut().take(3) {
        server.kill();
    }
    let other = ["once", "-w", "1s", "other", "--", "touch", "touched"];
    run(&sandbox, &urls, &other).fails(69, &["2 of 5 servers have a vote"]);
    assert!(!sandbox.path("touched").exists());
}

#[test]
fn server_with_a_new_disk_denies_no_result() {
    let sandbox = Sandbox::new();
    let mut servers = RedisSet::start_each(3, &RedisServer::builder().durable());
    let urls = servers.urls();
    let call = |subcommand: &str, args: &[&str]| {
        let limits = ["--max-ttl", "3s"];
        run(
            &sandbox,
            &urls,
            &[&[subcommand], &limits[..], args].concat(),
        )
    };
    call("init", &[]).fails(0, &[]);
    let mut nth = servers.iter_mut();
    let [first, second, third] = [(); 3].map(|()| nth.next().unwrap());
    let script = "echo x >> ran; echo \"done under $LEASEHOLD_FENCE\"";
    let request = [
        "--ttl", "3s", "-w", "1s", "pay/17", "--", "sh", "-c", script,
    ];
    third.kill();
    let shown = call("once", &request);
    assert_eq!(shown.code(), 0, "{shown:?}");
    third.restart();
    second.command(&["FLUSHALL"]);
    first.kill();
    call("members", &["readmit", &second.url()]).fails(0, &[]);
    // The two others have forgotten no lease that could be held still.
    until("locks to be granted again", || {
        let lock = ["--ttl", "3s", "-w", "1s", "other", "--", "true"];
        call("run", &lock).code() == 0
    });
    call("once", &request).fails(69, &["cannot say that a result does not exist"]);
    assert_eq!(sandbox.lines_in("ran").len(), 1);
    first.restart();
    let again = call("once", &request);
    assert_eq!(
        (again.code(), &again.stdout),
        (0, &shown.stdout),
        "{again:?}"
    );
    assert_eq!(sandbox.lines_in("ran").len(), 1);
}

#[test]
fn undurable_servers_are_refused_by_name() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 3);
    let command = ["once", "x", "--", "touch", "touched"];
    let refused = run(&sandbox, &servers.urls(), &command);
    let ids: Vec<String> = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port()))
        .collect();
    let named = format!("3 of 3 servers are not durable: {}", ids.join(", "));
    refused.fails(64, &["must outlive restarts", &named]);
    assert!(!sandbox.path("touched").exists());
}

/// One that is stopped after its command has ended, while the next one begins and commits.
fn a_stopped_caller_commits_nothing(sandbox: &Sandbox, urls: &[String]) {
    sandbox.gate("gate-1");
    sandbox.gate("gate-2");
    let first = start(sandbox, urls, &attempt("1"));
    let command = sandbox.pid_in("pid-1");
    let guardian = guardian_of(command);
    first.signal(Signal::SIGSTOP);
    until_stopped(first.pid());
    sandbox.open_gate("gate-1");
    until_gone(command);
    until_gone(guardian);
    let second = start(sandbox, urls, &attempt("2"));
    sandbox.pid_in("pid-2");
    // It wakes up while the next one is at it.
    first.signal(Signal::SIGCONT);
    first.wait().fails(76, &["lost"]);
    sandbox.open_gate("gate-2");
    let shown = [second.wait(), run(sandbox, urls, &attempt("3"))];
    assert_one_result(sandbox, &[&shown[0], &shown[1]]);
    let ran = sandbox.lines_in("ran");
    assert_eq!(ran.len(), 2);
    assert_eq!(shown[1].stdout, format!("done under {}\n", ran[1]));
}

#[test]
fn stopped_caller_commits_nothing_on_one_server() {
    let (sandbox, server) = (Sandbox::new(), RedisServer::start());
    a_stopped_caller_commits_nothing(&sandbox, &[server.url()]);
}

#[test]
fn stopped_caller_commits_nothing_on_five_servers() {
    let sandbox = Sandbox::new();
    let servers = durable_set(&sandbox, 5);
    a_stopped_caller_commits_nothing(&sandbox, &servers.urls());
}

#[test]
fn killed_call_is_followed_after_its_lease() {
    let (sandbox, server) = (Sandbox::new(), RedisServer::start());
    let urls = [server.url()];
    for number in ["1", "2", "3", "4"] {
        sandbox.gate(&format!("gate-{number}"));
    }
    let first = start(&sandbox, &urls, &attempt("1"));
    let command = sandbox.pid_in("pid-1");
    first.signal(Signal::SIGKILL);
    until_gone(command);

    let second = start(&sandbox, &urls, &attempt("2"));
    let command = sandbox.pid_in("pid-2");
    second.signal(Signal::SIGSTOP);
    until_stopped(second.pid());
    sandbox.open_gate("gate-2");
    until_gone(command);
    second.signal(Signal::SIGKILL);

    let third = start(&sandbox, &urls, &attempt("3"));
    sandbox.open_gate("gate-3");
    let shown = [third.wait(), run(&sandbox, &urls, &attempt("4"))];
    assert_one_result(&sandbox, &[&shown[0], &shown[1]]);
    assert_eq!(sandbox.lines_in("ran").len(), 2);
}

#[test]
fn unanswered_commit_is_reported_as_unknown() {
    let (sandbox, server) = (Sandbox::new(), RedisServer::start());
    let urls = [server.url()];
    sandbox.gate("gate-1");
    let first = start(&sandbox, &urls, &attempt("1"));
    let command = sandbox.pid_in("pid-1");
    server.freeze();
    sandbox.open_gate("gate-1");
    until_gone(command);
    let told = first.wait();
    server.thaw();
    assert!([69, 76].contains(&told.code()), "{told:?}");
    if told.code() == 69 {
        told.fails(69, &["CMD ended with 0", "it is unknown whether"]);
    }
    // Either it was committed after all, or it is run again: one result in any case.
    let plain = r#"echo "$LEASEHOLD_FENCE" >> ran; echo "done under $LEASEHOLD_FENCE" "#;
    let command = [&attempt("2")[..7], &["sh", "-c", plain]].concat();
    let shown = [(); 2].map(|()| run(&sandbox, &urls, &command));
    assert_one_result(&sandbox, &[&shown[0], &shown[1]]);
    let ran = sandbox.lines_in("ran").len();
    assert!((1..=2).contains(&ran), "run {ran} times");
}
