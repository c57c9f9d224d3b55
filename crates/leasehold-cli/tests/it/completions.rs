//! Shell completions with the names of locks.

use std::process::Command;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};

use crate::support::harness::{PROGRAM, Sandbox};

/// What bash completes for the last of `words`.
fn completed(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let line = words.join(" ");
    let script = format!(
        "leasehold() {{ {PROGRAM} \"$@\"; }}; source ./completions; COMP_LINE='{line}'; COMP_WORDS=({line}); \
         COMP_CWORD={}; COMPREPLY=(); _leasehold_and_names leasehold '{}' run; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.len() - 1,
        words.last().unwrap(),
    );
    let mut bash = Command::new("bash");
    sandbox.furnish(&mut bash);
    bash.env("LEASEHOLD_STORE", sandbox.store());
    bash.args(["-c", &script]);
    let ended = sandbox.spawn(bash).wait();
    assert_eq!(ended.stderr, "", "{ended:?}");
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_names_of_held_locks() {
    let sandbox = Sandbox::new();
    let script = sandbox.run("completions bash").stdout;
    std::fs::write(sandbox.path("completions"), script).unwrap();
    let deploy = sandbox.hold("deploy", "first-pid");
    let others = ["nightly", "with space"].map(|name| {
        let line = [
            "run",
            name,
            "--",
            "sh",
            "-c",
            "echo > started; while [ ! -e go ]; do sleep 0.02; done",
        ];
        let run = sandbox.start(&line);
        sandbox.line_in("started");
        std::fs::remove_file(sandbox.path("started")).unwrap();
        run
    });
    let names = sandbox.run(&["__names", "leasehold run "]);
    assert_eq!(names.succeeds().stdout, "deploy\nnightly\n");
    assert_eq!(
        completed(&sandbox, &["leasehold", "run", "dep"]),
        ["deploy"]
    );
    assert_eq!(
        completed(&sandbox, &["leasehold", "run", "--gr"]),
        ["--grace"]
    );
    sandbox.finish(deploy);
    for other in others {
        other.wait().succeeds();
    }
}

#[test]
fn redis_silence_delays_no_completion() {
    let (sandbox, server) = Sandbox::on_redis();
    server.freeze();
    let began = SystemClock.now();
    let names = sandbox.run(&["__names", "leasehold run "]).succeeds();
    let took = SystemClock.now().since(began);
    assert_eq!((&*names.stdout, &*names.stderr), ("", ""));
    assert!(took < Duration::from_secs(4), "{took:?}");
    server.thaw();
    let missing = sandbox.run(&["__names", "leasehold run --store file:relative "]);
    assert_eq!((missing.code(), &*missing.stderr), (0, ""));
}
