//! What happens if a result cannot be written.

use crate::support::harness::Sandbox;
use crate::support::program::sh;

/// A call of each subcommand that prints a result, with lock files.
const CALLS: [&str; 16] = [
    "--version",
    "--help",
    "ls",
    "ls --json",
    "status x",
    "status --json x",
    "waiters x",
    "exporter",
    "doctor --all",
    "gc",
    "gc --json",
    "once --show done",
    "elect --observe --once leader",
    "completions bash",
    "man run",
    "fence check --json --high-water fences 7",
];

/// Runs `script` in a shell for each call, whose place it marks with `CALL`.
fn for_each_call(script: &str, check: impl Fn(&str, i32, &str)) {
    let sandbox = Sandbox::new();
    sandbox.run(&sh("once done", "echo paid")).succeeds();
    for call in CALLS {
        let script = script.replace("CALL", &format!("$LEASEHOLD {call}"));
        let ended = sandbox.shell(&script).wait();
        check(call, ended.code(), &ended.stderr);
    }
}

/// The exit code of a call whose result is not lost.
fn usual_code(call: &str) -> i32 {
    if call.starts_with("elect") { 75 } else { 0 }
}

#[test]
fn closed_stdout_is_a_failure() {
    for_each_call("CALL >&-", |call, code, said| {
        assert_eq!(code, 74, "{call}: {said}");
        assert!(
            said.contains("cannot write to stdout: it is closed"),
            "{call}: {said}"
        );
    });
}

#[test]
fn full_stdout_is_a_failure() {
    for_each_call("CALL > /dev/full", |call, code, said| {
        assert_eq!(code, 74, "{call}: {said}");
        assert!(said.contains("No space left"), "{call}: {said}");
    });
}

/// A shell opens it to write, and Python's `subprocess.DEVNULL` to read and to write.
#[test]
fn dropped_stdout_is_no_failure() {
    for script in ["CALL > /dev/null", "CALL 1<> /dev/null"] {
        for_each_call(script, |call, code, said| {
            assert_eq!(code, usual_code(call), "{call}: {said}");
        });
    }
}

#[test]
fn gone_reader_is_no_failure() {
    let script = "rm -f gone; \
        { while [ ! -e gone ]; do sleep 0.01; done; CALL 2> said; echo $? > code; } | { exec 0<&-; echo > gone; }; \
        cat said >&2; exit $(cat code)";
    for_each_call(script, |call, code, said| {
        assert_eq!((code, said), (usual_code(call), ""), "{call}");
    });
}

#[test]
fn repeated_result_ends_with_its_reader() {
    let sandbox = Sandbox::new();
    let until_line =
        |call: &str| format!("($LEASEHOLD {call}; echo $? > code) | head -n 1; cat code");
    // Without JSON, the list stays the same.
    for call in ["ls --watch=100ms --json", "ls --watch=100ms"] {
        let watch = sandbox.shell(&until_line(call)).wait();
        assert!(watch.stdout.ends_with("\n0\n"), "{watch:?}");
        assert_eq!(watch.stderr, "");
    }
    let observer = sandbox.shell(&until_line("elect --observe --every 100ms leader"));
    observer.prints("leader: ");
    // Two changes: the first may still be written to the pipe.
    for _ in 0..2 {
        sandbox.run("elect leader sleep 1").succeeds();
    }
    let observer = observer.wait();
    assert!(observer.stdout.ends_with("\n0\n"), "{observer:?}");
    assert_eq!(observer.stderr, "");
}
