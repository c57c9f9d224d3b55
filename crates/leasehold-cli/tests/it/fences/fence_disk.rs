//! `fence check` and its disk: a fence passes only if it would survive a power cut, and a full disk changes
//! nothing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::program::Ended;

/// Builds the library that notes what a program does to files, where their order matters.
fn notes_library(sandbox: &Sandbox) -> PathBuf {
    let (source, library) = (sandbox.path("order.c"), sandbox.path("order.so"));
    fs::write(&source, include_str!("order.c")).unwrap();
    let mut build = Command::new("cc");
    build.args(["-shared", "-fPIC", "-o"]);
    let built = build.args([&library, &source]).output();
    let built = built.expect("cc, which `cargo xtask test` installs");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "cc order.c: {said}");
    library
}

/// What a check that shows `token` does to the disk, in order.
fn deeds(sandbox: &Sandbox, library: &PathBuf, token: &str) -> (i32, Vec<String>) {
    let notes = sandbox.path("notes");
    fs::write(&notes, "").unwrap();
    let mut command = sandbox.leasehold();
    command
        .env("LD_PRELOAD", library)
        .env("LEASEHOLD_ORDER_FILE", &notes)
        .args(["fence", "check", "--high-water", "kept/mark", token]);
    let ended = sandbox.spawn(command).wait();
    (ended.code(), sandbox.lines_in("notes"))
}

#[test]
fn what_passes_is_on_the_disk_before() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("kept")).unwrap();
    let library = notes_library(&sandbox);
    let deeds = |token| deeds(&sandbox, &library, token);
    let first = ["sync file", "link", "sync folder"];
    assert_eq!(deeds("5"), (0, first.map(Into::into).to_vec()));
    let greater = ["sync file", "rename", "sync folder"];
    assert_eq!(deeds("7"), (0, greater.map(Into::into).to_vec()));
    // The process that wrote the file may have died before its own sync.
    let same = ["sync file", "sync folder"];
    assert_eq!(deeds("7"), (0, same.map(Into::into).to_vec()));
    assert_eq!(deeds("6"), (76, Vec::new()));
}

/// A check that can write nothing more, as on a disk that is full.
fn without_room(sandbox: &Sandbox, token: u64) -> Ended {
    let script = format!(
        "trap '' XFSZ
        {{ (ulimit -f 0; exec {PROGRAM:?} fence check --high-water kept/mark {token}) 2>&1
        echo code-$?; }} | cat"
    );
    let mut command = Command::new("sh");
    sandbox.furnish(&mut command);
    command.args(["-c", &script]);
    sandbox.spawn(command).wait()
}

#[test]
fn full_disk_is_74_and_changes_nothing() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("kept")).unwrap();
    let names = || fs::read_dir(sandbox.path("kept")).unwrap().count();
    let refused = |deed: &str| {
        let said = without_room(&sandbox, 7).stdout;
        assert!(said.contains(&format!("cannot {deed}")), "{said}");
        assert!(said.ends_with("code-74\n"), "{said}");
    };
    refused("create");
    assert_eq!(names(), 0);
    fs::write(sandbox.path("kept/mark"), "5\n").unwrap();
    refused("write");
    assert_eq!(sandbox.line_in("kept/mark"), "5");
    assert_eq!(names(), 1, "nothing is left beside it");
}
