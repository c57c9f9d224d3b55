//! Tables fit the terminal.

use std::process::Command;

use leasehold_testkit::servers::until;
use leasehold_testkit::{start_on_terminal, written_on};

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::program::sh;

/// What `leasehold ls` prints on a terminal with 60 columns.
fn on_terminal(sandbox: &Sandbox, options: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    sandbox.furnish(&mut command);
    command
        .arg("ls")
        .args(options)
        .env("LEASEHOLD_STORE", sandbox.store())
        .env("TERM", "dumb");
    let (mut child, mut terminal) = start_on_terminal(&mut command, Some((60, 24))).unwrap();
    let mut printed = Vec::new();
    until("the end of ls", || {
        printed.extend(written_on(&mut terminal));
        child.try_wait().unwrap().is_some()
    });
    printed.extend(written_on(&mut terminal));
    String::from_utf8(printed).unwrap().replace("\r\n", "\n")
}

#[test]
fn table_is_cut_on_a_terminal_only() {
    let sandbox = Sandbox::new();
    let job = "echo > started; while [ ! -e go ]; do sleep 0.02; done; echo a very long command";
    let holder = sandbox.start(&sh("run --show-command line --label nightly deploy", job));
    sandbox.line_in("started");
    let fitted = on_terminal(&sandbox, &[]);
    let pid = format!(" {} ", holder.pid());
    assert!(fitted.contains(&pid), "{fitted}");
    assert!(fitted.contains("sh -c"), "{fitted}");
    assert!(fitted.contains('…'), "{fitted}");
    for line in fitted.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
    let piped = sandbox.run("ls").succeeds().stdout;
    for whole in [on_terminal(&sandbox, &["--wide"]), piped] {
        assert!(whole.contains("a very long command"), "{whole}");
        assert!(
            whole.contains("nightly") && whole.contains("FENCE"),
            "{whole}"
        );
    }
    sandbox.finish(holder);
}
