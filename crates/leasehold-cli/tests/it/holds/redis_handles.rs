//! Locks that are held between the commands of a script.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, Reply, until};
use serde_json::Value;

use crate::holds::hold::{bash, example};
use crate::run::redis::{initialized_quorum, run, start};
use crate::support::harness::{Ended, Sandbox};

fn with_handle(sandbox: &Sandbox, urls: &[String], handle: &str, args: &[&str]) -> Ended {
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_STORE", urls.join(","));
    command.env("LEASEHOLD_HANDLE", handle);
    command.args(args);
    sandbox.spawn(command).wait()
}

fn on_stdin(sandbox: &Sandbox, urls: &[String], handle: &str, args: &[&str]) -> Ended {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_STORE", urls.join(",")).stdin(reader);
    command.args(args);
    let running = sandbox.spawn(command);
    writer.write_all(handle.as_bytes()).unwrap();
    drop(writer);
    running.wait()
}

/// What the command printed: one line.
#[track_caller]
fn line(ended: &Ended) -> &str {
    assert_eq!(ended.code(), 0, "{ended:?}");
    let line = ended.stdout.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "{ended:?}");
    line
}

fn is_busy(sandbox: &Sandbox, urls: &[String]) -> bool {
    let ended = run(sandbox, urls, &["run", "-n", "x", "true"]);
    match ended.code() {
        0 => false,
        75 => true,
        _ => panic!("{ended:?}"),
    }
}

fn check_the_life_of_a_handle(sandbox: &Sandbox, urls: &[String]) {
    let acquired = run(sandbox, urls, &["acquire", "--ttl", "10s", "x"]);
    let first = line(&acquired);
    assert!(first.starts_with("lh1_") && first.len() > 100, "{first}");
    assert!(is_busy(sandbox, urls));
    run(sandbox, urls, &["acquire", "-n", "x"]).fails(75, &["held by"]);
    let renewed = with_handle(sandbox, urls, first, &["renew"]);
    assert_eq!(renewed.stderr, "", "all members answer");
    let second = line(&renewed);
    assert!(second.starts_with("lh1_") && second != first);
    let renewed = on_stdin(
        sandbox,
        urls,
        &format!("{second}\n"),
        &["renew", "--ttl", "20s"],
    );
    let third = line(&renewed).to_owned();
    assert!(is_busy(sandbox, urls));
    let waiter = start(sandbox, urls, &["run", "-w", "40s", "x", "true"]);
    waiter.says("1st in the queue");
    // Any of them frees the lock, and only once.
    let released = SystemClock.now();
    assert_eq!(with_handle(sandbox, urls, second, &["release"]).stdout, "");
    assert_eq!(waiter.wait().code(), 0);
    let handed_over = SystemClock.now().since(released);
    assert!(handed_over < Duration::from_secs(15), "{handed_over:?}");
    assert!(!is_busy(sandbox, urls));
    let again = on_stdin(sandbox, urls, &third, &["release"]);
    again.fails(76, &["\"x\" was no longer held by this handle"]);
    with_handle(sandbox, urls, &third, &["renew"]).fails(76, &["lost", "x"]);
    assert!(!again.stderr.contains(&third));
}

#[test]
fn handle_holds_a_lock_without_a_process() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    check_the_life_of_a_handle(&sandbox, &[server.url()]);
    let servers = initialized_quorum(&sandbox, 5);
    check_the_life_of_a_handle(&sandbox, &servers.urls());
}

#[test]
fn handle_on_another_store_is_refused_and_kept() {
    let sandbox = Sandbox::new();
    let (right, wrong) = (RedisServer::start(), RedisServer::start());
    let (right, wrong) = ([right.url()], [wrong.url()]);
    let file = sandbox.path("handle");
    let file = file.to_str().unwrap();
    let acquired = run(&sandbox, &right, &["acquire", "--handle-file", file, "x"]);
    assert_eq!(acquired.code(), 0, "{acquired:?}");
    for subcommand in ["release", "renew"] {
        let refused = run(&sandbox, &wrong, &[subcommand, "--handle-file", file]);
        let [right, wrong] = [&right, &wrong].map(|urls| urls[0].strip_prefix("redis://").unwrap());
        refused.fails(
            64,
            &["lock \"x\": the handle is of a lock on", right, wrong],
        );
    }
    assert!(is_busy(&sandbox, &right));
    let released = run(&sandbox, &right, &["release", "--handle-file", file]);
    assert_eq!(released.code(), 0, "{released:?}");
    assert!(!is_busy(&sandbox, &right));
}

fn object(ended: &Ended) -> (Value, Vec<String>) {
    let value: Value = serde_json::from_str(line(ended)).unwrap();
    let fields = value.as_object().unwrap().keys().cloned().collect();
    assert_eq!(value["version"], 1);
    (value, fields)
}

#[test]
fn json_has_the_fields_of_version_1() {
    let sandbox = Sandbox::new();
    let servers = initialized_quorum(&sandbox, 5);
    let urls = servers.urls();
    let acquire = ["acquire", "--json", "--permits", "3", "--ttl", "20s", "x"];
    let (acquired, fields) = object(&run(&sandbox, &urls, &acquire));
    let expected = [
        "expires_in_ms",
        "fence",
        "handle",
        "lock",
        "mode",
        "permits",
        "store",
        "ttl_ms",
        "version",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        (&acquired["lock"], &acquired["ttl_ms"]),
        (&"x".into(), &20_000.into())
    );
    assert_eq!(
        (&acquired["mode"], &acquired["permits"]),
        (&"permit".into(), &3.into())
    );
    let left = acquired["expires_in_ms"].as_u64().unwrap();
    assert!(left > 0 && left <= 17_500, "{left}");
    let handle = acquired["handle"].as_str().unwrap();
    let (renewed, fields) = object(&with_handle(&sandbox, &urls, handle, &["renew", "--json"]));
    assert_eq!(fields, expected);
    assert_eq!(renewed["fence"], acquired["fence"]);
    let handle = renewed["handle"].as_str().unwrap();
    let (released, fields) = object(&with_handle(
        &sandbox,
        &urls,
        handle,
        &["release", "--json"],
    ));
    assert_eq!(fields, ["lock", "released", "store", "version"]);
    assert_eq!(released["released"], true);
    let gone = with_handle(&sandbox, &urls, handle, &["release", "--json"]);
    gone.fails(76, &[r#""event":"error""#, r#""exit_code":76"#]);
    assert!(gone.stdout.contains(r#""released":false"#), "{gone:?}");
}

#[test]
fn handle_file_is_private_and_follows_renewals() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let file = sandbox.path("deploy.handle");
    let with_file = |subcommand: &[&str]| {
        let args = [subcommand, &["--handle-file", "deploy.handle"]].concat();
        run(&sandbox, &urls, &args)
    };
    let acquired = with_file(&["acquire", "x"]);
    assert_eq!(
        (acquired.code(), &*acquired.stdout),
        (0, ""),
        "{acquired:?}"
    );
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = fs::read_to_string(&file).unwrap();
    let mut opened = File::open(&file).unwrap();
    let renewed = with_file(&["renew"]);
    assert!(line(&renewed).ends_with("ms left"), "{renewed:?}");
    assert_ne!(fs::read_to_string(&file).unwrap(), first);
    // A new file took the name, so a reader sees either the old or the new file as a whole.
    assert_eq!(io::read_to_string(&mut opened).unwrap(), first);
    let (json, _) = object(&with_file(&["renew", "--json"]));
    assert!(json["handle"].is_null());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let released = with_file(&["release"]);
    released.fails(0, &["warning", "deploy.handle is readable by other users"]);
    assert!(!file.exists());
    assert!(!is_busy(&sandbox, &urls));
    assert_eq!(named(&sandbox, "handle"), [""; 0]);
}

/// The files whose names begin like that.
fn named(sandbox: &Sandbox, begin: &str) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path("")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(begin)).collect()
}

#[test]
fn handle_file_is_removed_only_with_the_lock() {
    let sandbox = Sandbox::new();
    let mut server = RedisServer::start();
    let urls = [server.url()];
    let with_file = |file: &str, subcommand: &[&str]| {
        let args = [subcommand, &["--handle-file", file]].concat();
        run(&sandbox, &urls, &args)
    };
    let acquired = with_file("first", &["acquire", "--ttl", "10s", "x"]);
    assert_eq!(acquired.code(), 0, "{acquired:?}");
    with_file("other", &["acquire", "-n", "x"]).fails(75, &["held by"]);
    assert_eq!(named(&sandbox, "other"), [""; 0]);
    // A temporary file in the same folder cannot have a longer name.
    let longest = "n".repeat(255);
    fs::rename(sandbox.path("first"), sandbox.path(&longest)).unwrap();
    let text = fs::read_to_string(sandbox.path(&longest)).unwrap();
    with_file(&longest, &["renew", "--ttl", "60s"]).fails(74, &["cannot write"]);
    let left = server.command(&["PTTL", "x"]);
    let Reply::Integer(..=10_000) = left else {
        panic!("it was renewed: {left:?}");
    };
    assert_eq!(named(&sandbox, "n"), [longest.as_str()]);
    assert_eq!(fs::read_to_string(sandbox.path(&longest)).unwrap(), text);
    server.command(&["DEL", "x"]);
    with_file(&longest, &["release"]).fails(76, &["no longer held by this handle"]);
    assert_eq!(named(&sandbox, "n"), [""; 0]);
    assert_eq!(with_file("last", &["acquire", "x"]).code(), 0);
    server.kill();
    with_file("last", &["release"]).fails(69, &[]);
    assert_eq!(named(&sandbox, "last"), ["last"], "it may still be held");
}

#[test]
fn undelivered_handle_holds_nothing() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    fs::create_dir(sandbox.path("folder")).unwrap();
    for place in ["nowhere/handle", "folder"] {
        let ended = run(&sandbox, &urls, &["acquire", "x", "--handle-file", place]);
        ended.fails(74, &["cannot write", place]);
        assert!(!is_busy(&sandbox, &urls));
    }
    for args in [
        &["acquire", "x"][..],
        &["acquire", "--json", "--handle-file", "deploy.handle", "x"],
    ] {
        let (closed, stdout) = io::pipe().unwrap();
        drop(closed);
        let mut command = sandbox.without_store();
        command.env("LEASEHOLD_STORE", server.url()).stdout(stdout);
        let output = command.args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(74), "{output:?}");
        assert!(!is_busy(&sandbox, &urls));
        assert!(!sandbox.path("deploy.handle").exists());
    }
}

#[test]
fn expired_handle_is_76_and_spares_next_holder() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let began = SystemClock.now();
    let acquired = run(&sandbox, &urls, &["acquire", "--ttl", "2s", "x"]);
    let handle = line(&acquired);
    let next = run(
        &sandbox,
        &urls,
        &["acquire", "-w", "20s", "--ttl", "30s", "x"],
    );
    line(&next);
    assert!(SystemClock.now().since(began) >= Duration::from_millis(1_800));
    with_handle(&sandbox, &urls, handle, &["renew"]).fails(76, &["deadline"]);
    with_handle(&sandbox, &urls, handle, &["release"]).fails(76, &["no longer held"]);
    assert!(is_busy(&sandbox, &urls));
}

#[test]
fn other_store_and_dead_store_differ() {
    let sandbox = Sandbox::new();
    let (mut server, other) = (RedisServer::start(), RedisServer::start());
    let (urls, others) = ([server.url()], [other.url()]);
    let acquired = run(&sandbox, &urls, &["acquire", "--ttl", "60s", "x"]);
    let handle = line(&acquired);
    for subcommand in ["renew", "release"] {
        with_handle(&sandbox, &others, handle, &[subcommand])
            .fails(64, &["the handle is of a lock on"]);
    }
    assert!(is_busy(&sandbox, &urls));
    for ttl in ["61s", "99ms"] {
        let ended = with_handle(&sandbox, &urls, handle, &["renew", "--ttl", ttl]);
        ended.fails(64, &[ttl, "100ms to 60s"]);
    }
    run(&sandbox, &urls, &["acquire", "--ttl", "61s", "y"]).fails(64, &["TTL 1m 1s exceeds"]);
    server.kill();
    let dead = with_handle(&sandbox, &urls, handle, &["renew"]);
    dead.fails(69, &[]);
    assert!(!dead.stderr.contains(handle));
    with_handle(&sandbox, &urls, handle, &["release"]).fails(69, &[]);
}

#[test]
fn handle_is_renewed_without_a_minority() {
    let sandbox = Sandbox::new();
    let mut servers = initialized_quorum(&sandbox, 5);
    let urls = servers.urls();
    let acquired = run(&sandbox, &urls, &["acquire", "--ttl", "60s", "x"]);
    servers[0].kill();
    servers[1].freeze();
    let renewed = with_handle(&sandbox, &urls, line(&acquired), &["renew"]);
    assert_eq!(renewed.code(), 0, "{renewed:?}");
    let handle = renewed.stdout.trim();
    assert_eq!(with_handle(&sandbox, &urls, handle, &["release"]).code(), 0);
    servers[1].thaw();
}

#[test]
fn people_see_who_renewed_last() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let urls = [server.url()];
    let is_shown = |pid: i32| {
        let status = run(&sandbox, &urls, &["status", "x"]);
        status
            .stdout
            .contains(&format!("held by leasehold (pid {pid} "))
    };
    let acquiring = start(&sandbox, &urls, &["acquire", "x"]);
    let pid = acquiring.pid();
    let acquired = acquiring.wait();
    until("the holder's name", || is_shown(pid));
    let mut command = sandbox.without_store();
    command.env("LEASEHOLD_STORE", server.url());
    command
        .env("LEASEHOLD_HANDLE", line(&acquired))
        .arg("renew");
    let renewing = sandbox.spawn(command);
    let pid = renewing.pid();
    assert_eq!(renewing.wait().code(), 0);
    until("the name of who renewed", || is_shown(pid));
}

#[test]
fn script_in_the_help_works() {
    let sandbox = Sandbox::new();
    let server = RedisServer::start();
    let script = example(&sandbox, "acquire")
        .replace("./first-step.sh", "leasehold status deploy")
        .replace("./second-step.sh", "leasehold status deploy");
    assert_eq!(script.matches("status").count(), 2, "{script}");
    let mut command = bash(&sandbox, &format!("{script}\nleasehold status deploy"));
    command.env("LEASEHOLD_STORE", server.url());
    let ended = sandbox.spawn(command).wait();
    assert_eq!((ended.code(), &*ended.stderr), (0, ""), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{ended:?}");
    assert!(
        lines[..2]
            .iter()
            .all(|line| line.starts_with("deploy: held by"))
    );
    assert_eq!(lines[2], "deploy: free");
}
