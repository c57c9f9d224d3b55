//! Values that break a rule: each is refused with the value and the rule, and nothing is changed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::harness::{PROGRAM, Sandbox};

/// Runs with `args`, and asserts the refusal, and that there is neither a command nor a lock.
#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let sandbox = Sandbox::new();
    let args: Vec<&str> = args.iter().chain(&["touch", "ran"]).copied().collect();
    let ended = sandbox.run(&args);
    ended.fails(64, parts);
    assert!(!ended.stderr.contains("secret"), "{ended:?}");
    assert!(!sandbox.path("ran").exists());
    let files = fs::read_dir(sandbox.path("locks")).map_or(0, Iterator::count);
    assert_eq!(files, 0);
}

#[test]
fn names() {
    refused(&["run", ""], &["lock name is empty"]);
    refused(&["run", "a\nb"], &[r#""a\nb""#, "control character"]);
    refused(&["run", "leasehold:x"], &["leasehold:x", "reserved"]);
    let long = "n".repeat(513);
    refused(&["run", &long], &["513 bytes", "the maximum is 512"]);
}

#[test]
fn spans() {
    refused(
        &["run", "--ttl", "30", "x"],
        &["'30'", "needs a unit", "30s"],
    );
    refused(&["run", "-w", "soon", "x"], &["soon"]);
    refused(
        &["run", "--ttl", "9s", "--grace", "3s", "x"],
        &["3s", "9s", "third"],
    );
    refused(
        &["run", "--max-hold", "3s", "--grace", "1s", "x"],
        &["1s", "3s", "hold"],
    );
    refused(&["run", "--max-hold", "0s", "x"], &["max_hold", "zero"]);
    refused(&["run", "-E", "256", "x"], &["256", "0..=255"]);
}

#[test]
fn permits() {
    for number in ["0", "129", "-1", "many", "1.5", ""] {
        let option = format!("--permits={number}");
        refused(
            &["run", &option, "x"],
            &["--permits", "the number of permits must be 1 to 128"],
        );
    }
    refused(
        &["run", "--permits", "2", "-s", "x"],
        &["--permits", "--shared", "cannot be used with"],
    );
    refused(
        &["run", "--permits", "2", "--also", "y", "x"],
        &["--permits", "--also", "cannot be used with"],
    );
}

#[test]
fn a_negative_number_of_permits() {
    refused(
        &["run", "--permits", "-1", "x"],
        &["'-1'", "permits must be 1 to 128"],
    );
}

#[test]
fn further_names() {
    refused(&["run", "x", "--also", ""], &["lock name is empty"]);
    refused(
        &["run", "x", "--also", "leasehold:y"],
        &["leasehold:y", "reserved"],
    );
    refused(
        &["run", "--nested", "--also", "y", "x"],
        &["--nested", "--also", "cannot be used with"],
    );
}

#[test]
fn lock_delay() {
    refused(&["run", "--lock-delay", "5", "x"], &["'5'", "needs a unit"]);
    refused(
        &["run", "--lock-delay", "5s", "x"],
        &["lock_delay 5s", "a lock ends with its process"],
    );
    let one = "redis://127.0.0.1:1";
    let args = ["run", "--store", one, "--lock-delay", "45s", "x"];
    refused(&args, &["TTL 30s", "lock_delay 45s", "at most 60s"]);
}

#[test]
fn time_to_live_of_a_lease() {
    let one = "redis://127.0.0.1:1";
    let three = "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3";
    let run = |store, ttl| refused(&["run", "--store", store, "--ttl", ttl, "x"], &[ttl, "TTL"]);
    run(one, "99ms");
    run(one, "1m 1s");
    run(three, "2s");
}

#[test]
fn addresses() {
    let store = |urls, parts: &[&str]| refused(&["run", "--store", urls, "x"], parts);
    store("", &["--store names no store"]);
    store("redis://a,", &["empty address"]);
    store(
        "mysql://u:secret@a",
        &["mysql", "redis://", "unknown scheme"],
    );
    store("a.example:6379", &["a.example:6379", "scheme"]);
    store("redis://:secret@a:port", &["port"]);
    store("redis://a,redis://:secret@a:6379", &["a:6379", "twice"]);
    store("redis://a?id=m,redis://b?id=m", &["m", "twice"]);
    store("redis://a,file:///tmp", &["file"]);
    store("file://relative", &["file://relative"]);
    store("file:///tmp?safe=1", &["safe=1"]);
    let many: Vec<String> = (0..32).map(|n| format!("redis://host{n}")).collect();
    store(&many.join(","), &["31"]);
}

#[test]
fn folder_on_a_remote_file_system() {
    refused(&["run", "--store", "file:///proc/locks", "x"], &["/proc"]);
}

#[test]
fn unwritable_lock_folder_is_77() {
    let sandbox = Sandbox::new();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(sandbox.path("."), open).unwrap();
    fs::create_dir(sandbox.path("locks")).unwrap();
    fs::set_permissions(sandbox.path("locks"), fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write to every folder, so the call runs as another user, who needs a copy of the program.
    // `install` makes the copy, because a file that is open for writing cannot be executed. If this
    // process wrote it, a process started by another test would also keep it open for a moment.
    let mut copy = Command::new("install");
    copy.args(["-m", "755", PROGRAM])
        .arg(sandbox.path("leasehold"));
    assert!(copy.status().unwrap().success());
    let mut command = if nix::unistd::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "./leasehold",
        ]);
        command
    } else {
        Command::new("./leasehold")
    };
    sandbox.furnish(&mut command);
    command.env("LEASEHOLD_STORE", sandbox.store());
    command.args(["run", "x", "true"]);
    let folder = sandbox.path("locks").display().to_string();
    sandbox.spawn(command).wait().fails(77, &[&folder]);
}
