//! Locks that are held between the commands of a script.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold_testkit::servers::{RedisServer, Reply};
use serde_json::{Value, json};

use crate::holds::handles::{line, with_handle};
use crate::holds::hold::{bash, example, is_busy};
use crate::support::harness::{Sandbox, id};
use crate::support::program::{Ended, assert_fields};

#[test]
fn handle_on_another_store_is_refused_and_kept() {
    let (sandbox, mut server) = Sandbox::on_redis();
    let other = RedisServer::start();
    sandbox
        .run("acquire --ttl 60s --handle-file handle x")
        .succeeds();
    let names = [id(&server), id(&other)];
    let reason = [
        "lock \"x\": the handle is of a lock on",
        &names[0],
        &names[1],
    ];
    for subcommand in ["release", "renew"] {
        let refused = format!("{subcommand} --handle-file handle");
        sandbox.run_at(&[other.url()], &refused).fails(64, &reason);
    }
    assert!(is_busy(&sandbox));
    let handle = fs::read_to_string(sandbox.path("handle")).unwrap();
    for (ttl, shown) in [("86401s", "TTL 1day 1s"), ("99ms", "TTL 99ms")] {
        let refused = with_handle(&sandbox, &handle, &format!("renew --ttl {ttl}"));
        refused.fails(64, &[shown, "100ms to 1day"]);
    }
    let refused = sandbox.run("acquire --ttl 25h y");
    refused.fails(64, &["TTL 1day 1h is out of bounds"]);
    server.kill();
    for subcommand in ["renew", "release"] {
        let dead = with_handle(&sandbox, &handle, subcommand);
        dead.fails(69, &[]);
        assert!(!dead.stderr.contains(handle.trim()));
    }
}

fn object(ended: &Ended) -> (Value, String) {
    let value: Value = serde_json::from_str(line(ended)).unwrap();
    let fields: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let fields = fields.join(" ");
    assert_eq!(value["version"], 1);
    (value, fields)
}

#[test]
fn json_has_the_fields_of_version_1() {
    let (sandbox, _servers) = Sandbox::on_quorum(5);
    let (acquired, fields) = object(&sandbox.run("acquire --json --permits 3 --ttl 20s x"));
    let expected = "expires_in_ms fence handle lock mode permits store time ttl_ms version";
    assert_eq!(fields, expected);
    assert_fields(&acquired, json!({"lock": "x", "ttl_ms": 20_000}));
    assert_fields(&acquired, json!({"mode": "permit", "permits": 3}));
    let left = acquired["expires_in_ms"].as_u64().unwrap();
    assert!(left > 0 && left <= 17_500, "{left}");
    let handle = acquired["handle"].as_str().unwrap();
    let (renewed, fields) = object(&with_handle(&sandbox, handle, "renew --json"));
    assert_eq!(fields, expected);
    assert_eq!(renewed["fence"], acquired["fence"]);
    let handle = renewed["handle"].as_str().unwrap();
    let (released, fields) = object(&with_handle(&sandbox, handle, "release --json"));
    assert_eq!(fields, "lock released store time version");
    assert_eq!(released["released"], true);
    let gone = with_handle(&sandbox, handle, "release --json");
    gone.fails(76, &[r#""event":"error""#, r#""exit_code":76"#]);
    assert!(gone.stdout.contains(r#""released":false"#), "{gone:?}");
}

#[test]
fn handle_file_is_private_and_follows_renewals() {
    let (sandbox, _server) = Sandbox::on_redis();
    let file = sandbox.path("deploy.handle");
    let with_file = |args: &str| sandbox.run(&format!("{args} --handle-file deploy.handle"));
    assert_eq!(with_file("acquire x").succeeds().stdout, "");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = fs::read_to_string(&file).unwrap();
    let mut opened = File::open(&file).unwrap();
    let renewed = with_file("renew");
    assert!(line(&renewed).ends_with("ms left"), "{renewed:?}");
    assert_ne!(fs::read_to_string(&file).unwrap(), first);
    // A new file took the name, so a reader sees either the old or the new file as a whole.
    assert_eq!(io::read_to_string(&mut opened).unwrap(), first);
    let (json, _) = object(&with_file("renew --json"));
    assert!(json["handle"].is_null());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let warning = ["warning", "deploy.handle is readable by other users"];
    with_file("release").fails(0, &warning);
    assert!(!file.exists());
    assert!(!is_busy(&sandbox));
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
    let (sandbox, mut server) = Sandbox::on_redis();
    let with_file = |file: &str, args: &str| sandbox.run(&format!("{args} --handle-file {file}"));
    with_file("first", "acquire --ttl 10s x").succeeds();
    with_file("other", "acquire -n x").fails(75, &["held by"]);
    assert_eq!(named(&sandbox, "other"), [""; 0]);
    // A temporary file in the same folder cannot have a longer name.
    let longest = "n".repeat(255);
    fs::rename(sandbox.path("first"), sandbox.path(&longest)).unwrap();
    let text = fs::read_to_string(sandbox.path(&longest)).unwrap();
    with_file(&longest, "renew --ttl 60s").fails(74, &["cannot write"]);
    let left = server.command(&["PTTL", "x"]);
    let Reply::Integer(..=10_000) = left else {
        panic!("it was renewed: {left:?}");
    };
    assert_eq!(named(&sandbox, "n"), [longest.as_str()]);
    assert_eq!(fs::read_to_string(sandbox.path(&longest)).unwrap(), text);
    server.command(&["DEL", "x"]);
    with_file(&longest, "release").fails(76, &["no longer held by this handle"]);
    assert_eq!(named(&sandbox, "n"), [""; 0]);
    with_file("last", "acquire x").succeeds();
    server.kill();
    with_file("last", "release").fails(69, &[]);
    assert_eq!(named(&sandbox, "last"), ["last"], "it may still be held");
}

#[test]
fn undelivered_handle_holds_nothing() {
    let (sandbox, _server) = Sandbox::on_redis();
    fs::create_dir(sandbox.path("folder")).unwrap();
    for place in ["nowhere/handle", "folder"] {
        let ended = sandbox.run(&format!("acquire x --handle-file {place}"));
        ended.fails(74, &["cannot write", place]);
        assert!(!is_busy(&sandbox));
    }
    for args in ["acquire x", "acquire --json --handle-file deploy.handle x"] {
        let (closed, stdout) = io::pipe().unwrap();
        drop(closed);
        let mut command = sandbox.leasehold();
        let output = command
            .args(args.split(' '))
            .stdout(stdout)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(74), "{output:?}");
        assert!(!is_busy(&sandbox));
        assert!(!sandbox.path("deploy.handle").exists());
    }
}

#[test]
fn expired_handle_is_76_and_spares_next_holder() {
    let (sandbox, _server) = Sandbox::on_redis();
    let began = SystemClock.now();
    let acquired = sandbox.run("acquire --ttl 2s x");
    let handle = line(&acquired);
    sandbox.run("acquire -w 20s --ttl 30s x").succeeds();
    assert!(SystemClock.now().since(began) >= Duration::from_millis(1_800));
    with_handle(&sandbox, handle, "renew").fails(76, &["deadline"]);
    with_handle(&sandbox, handle, "release").fails(76, &["no longer held"]);
    assert!(is_busy(&sandbox));
}

#[test]
fn handle_is_renewed_without_a_minority() {
    let (sandbox, mut servers) = Sandbox::on_quorum(5);
    let acquired = sandbox.run("acquire --ttl 60s x");
    servers[0].kill();
    servers[1].freeze();
    let renewed = with_handle(&sandbox, line(&acquired), "renew").succeeds();
    with_handle(&sandbox, renewed.stdout.trim(), "release").succeeds();
    servers[1].thaw();
}

#[test]
fn closed_stdout_is_refused_before_the_lock() {
    let (sandbox, _server) = Sandbox::on_redis();
    let shell = |script: &str| {
        sandbox
            .shell(&format!("exec \"$LEASEHOLD\" {script}"))
            .wait()
    };
    let parts = ["stdout is closed", "--handle-file"];
    shell("acquire x >&-").fails(74, &parts);
    shell("acquire --json x >&-").fails(74, &parts);
    assert!(!is_busy(&sandbox));
    shell("acquire --handle-file handle x >&-").succeeds();
    shell("renew --handle-file handle >&-").succeeds();
    let handle = fs::read_to_string(sandbox.path("handle")).unwrap();
    fs::write(sandbox.path("before"), &handle).unwrap();
    shell("renew < before >&-").fails(74, &parts);
    shell("release --handle-file handle >&-").succeeds();
    // This drops the handle on purpose: no other client gets the lock within its TTL.
    shell("acquire y > /dev/null").succeeds();
    assert!(sandbox.run("status y").stdout.contains("held by"));
}

#[test]
fn script_in_the_help_works() {
    let (sandbox, _server) = Sandbox::on_redis();
    let script = example(&sandbox, "acquire")
        .replace("./first-step.sh", "leasehold status deploy")
        .replace("./second-step.sh", "leasehold status deploy");
    assert_eq!(script.matches("status").count(), 2, "{script}");
    let script = bash(&sandbox, &format!("{script}\nleasehold status deploy"));
    let ended = sandbox.spawn(script).wait();
    assert_eq!((ended.code(), &*ended.stderr), (0, ""), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("deploy: held by"), "{ended:?}");
    assert!(lines[1].starts_with("deploy: held by"), "{ended:?}");
    assert_eq!(lines[2..], ["deploy: free"]);
}
