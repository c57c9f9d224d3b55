//! `fence check`, which scripts use to compare fences.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::Value;

use crate::harness::{Ended, Sandbox};

fn check(sandbox: &Sandbox, token: u64) -> Ended {
    sandbox.run(&["fence", "check", "--high-water", "mark", &token.to_string()])
}

fn mark(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.path("mark")).unwrap()
}

/// The names in the folder of the file, except what the harness itself writes.
fn files(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path(".")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with("std")).collect()
}

#[test]
fn fence_passes_unless_a_greater_was_seen() {
    let sandbox = Sandbox::new();
    for (token, code, stands) in [
        (5, 0, "5\n"),
        (5, 0, "5\n"),
        (7, 0, "7\n"),
        (6, 76, "7\n"),
        (7, 0, "7\n"),
        (u64::MAX, 0, "18446744073709551615\n"),
    ] {
        let ended = check(&sandbox, token);
        assert_eq!((ended.code(), &*ended.stdout), (code, ""), "{ended:?}");
        assert_eq!(mark(&sandbox), stands);
    }
    check(&sandbox, 7).fails(76, &["fence 7 is older than 18446744073709551615", "mark"]);
    assert_eq!(files(&sandbox), ["mark"], "nothing else is left");
}

#[test]
fn programs_get_an_object_also_of_a_refusal() {
    let sandbox = Sandbox::new();
    let check = |token: &str| {
        let args = ["fence", "check", "--json", "--high-water", "mark", token];
        let ended = sandbox.run(&args);
        assert_eq!(ended.stderr, "");
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(answer["version"], 1);
        let fields = ["token", "passes", "high_water", "before"];
        (ended.code(), fields.map(|field| answer[field].clone()))
    };
    let null = Value::Null;
    assert_eq!(check("5"), (0, [5.into(), true.into(), 5.into(), null]));
    assert_eq!(check("9"), (0, [9.into(), true.into(), 9.into(), 5.into()]));
    assert_eq!(
        check("8"),
        (76, [8.into(), false.into(), 9.into(), 9.into()])
    );
}

#[test]
fn a_run_shows_its_own_fence() {
    let sandbox = Sandbox::new();
    let script = "\"$LEASEHOLD\" fence check --high-water mark && echo written > data";
    let first = sandbox.run(&["run", "x", "--", "sh", "-c", script]);
    assert_eq!(first.code(), 0, "{first:?}");
    let fence: u64 = mark(&sandbox).trim_end().parse().unwrap();
    assert!(fence > 1_600_000_000_000_000, "{fence}");
    // Any holder with a greater fence is a later holder.
    assert_eq!(check(&sandbox, fence + 3_600_000_000).code(), 0);
    fs::remove_file(sandbox.path("data")).unwrap();
    let late = sandbox.run(&["run", "x", "--", "sh", "-c", script]);
    late.fails(76, &["is older than"]);
    assert!(!sandbox.path("data").exists());
    sandbox
        .run(&["fence", "check", "--high-water", "mark"])
        .fails(64, &["give TOKEN", "LEASEHOLD_FENCE"]);
}

#[test]
fn invalid_fence_is_64_and_changes_nothing() {
    let sandbox = Sandbox::new();
    check(&sandbox, 5);
    for token in [
        "0",
        "-1",
        "+7",
        "",
        " 7",
        "7 ",
        "7\n",
        "1e3",
        "0x9",
        "18446744073709551616",
    ] {
        let args = ["fence", "check", "--high-water", "mark", token];
        let rule = "a fence is a number from 1 to 18446744073709551615";
        sandbox.run(&args).fails(64, &[rule]);
        assert_eq!(mark(&sandbox), "5\n");
    }
    sandbox.run(&["fence"]).fails(64, &["check"]);
    sandbox
        .run(&["fence", "check", "7"])
        .fails(64, &["--high-water"]);
    sandbox
        .run(&["fence", "check", "--high-water", "", "7"])
        .fails(64, &[]);
    let json = sandbox.run(&["fence", "check", "--json", "--high-water", "mark", "0"]);
    let error: Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!((json.code(), &error["exit_code"]), (64, &64.into()));
}

#[test]
fn damaged_file_refuses_all_and_is_kept() {
    let sandbox = Sandbox::new();
    let long = "9".repeat(100_000);
    for damaged in ["", "\n", "0\n", "seven", "7\n8\n", "5\0", &long] {
        fs::write(sandbox.path("mark"), damaged).unwrap();
        check(&sandbox, 9).fails(65, &["mark", "damaged", "the greatest fence"]);
        assert_eq!(mark(&sandbox), damaged);
    }
    // As `echo` writes it, and `printf` too.
    for whole in ["7\n", "7"] {
        fs::write(sandbox.path("mark"), whole).unwrap();
        check(&sandbox, 6).fails(76, &["older than 7"]);
    }
}

#[test]
fn what_is_no_file_is_74() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("mark")).unwrap();
    check(&sandbox, 9).fails(74, &["mark", "not a regular file"]);
    fs::remove_dir(sandbox.path("mark")).unwrap();
    mkfifo(&sandbox.path("mark"), Mode::S_IRWXU).unwrap();
    check(&sandbox, 9).fails(74, &["mark", "not a regular file"]);
    fs::remove_file(sandbox.path("mark")).unwrap();
    symlink("nowhere", sandbox.path("mark")).unwrap();
    check(&sandbox, 9).fails(74, &["mark", "link to a missing file"]);
    assert!(!sandbox.path("nowhere").exists());
    let at = |file: &str| sandbox.run(&["fence", "check", "--high-water", file, "9"]);
    at("no/such/mark").fails(74, &["no/such/mark", "No such file or directory"]);
    at("/").fails(74, &["folder"]);
    at("..").fails(74, &[]);
}

#[test]
fn link_mode_and_owner_are_kept() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("elsewhere")).unwrap();
    let target = sandbox.path("elsewhere/mark");
    fs::write(&target, "5\n").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&target, Some(65_534), Some(65_533)).unwrap();
    }
    let before = fs::metadata(&target).unwrap();
    symlink("elsewhere/mark", sandbox.path("mark")).unwrap();
    assert_eq!(check(&sandbox, 9).code(), 0);
    assert!(sandbox.path("mark").is_symlink());
    let after = fs::metadata(&target).unwrap();
    let about = |it: &fs::Metadata| (it.mode(), it.uid(), it.gid());
    assert_eq!(
        (about(&after), mark(&sandbox)),
        (about(&before), "9\n".into())
    );
    assert_ne!(after.ino(), before.ino(), "it was replaced as a whole");
}

fn as_nobody(sandbox: &Sandbox, token: &str) -> Ended {
    crate::nobody::run(sandbox, &["fence", "check", "--high-water", "mark", token])
}

#[test]
fn inaccessible_file_is_74_and_unchanged() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path(".");
    let allow = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    check(&sandbox, 5);
    crate::nobody::copy_program(&sandbox);
    allow(&folder, 0o777);
    allow(&sandbox.path("mark"), 0o444);
    as_nobody(&sandbox, "7").fails(74, &["cannot write", "mark", "Permission denied"]);
    as_nobody(&sandbox, "4").fails(76, &["older than 5"]);
    assert_eq!(
        as_nobody(&sandbox, "5").code(),
        0,
        "nothing is to be written"
    );
    allow(&sandbox.path("mark"), 0o000);
    as_nobody(&sandbox, "7").fails(74, &["cannot read", "mark", "Permission denied"]);
    allow(&folder, 0o555);
    allow(&sandbox.path("mark"), 0o666);
    as_nobody(&sandbox, "7").fails(74, &["cannot write", "mark", "Permission denied"]);
    assert_eq!(mark(&sandbox), "5\n");
    allow(&folder, 0o755);
    fs::remove_file(sandbox.path("mark")).unwrap();
    allow(&folder, 0o555);
    as_nobody(&sandbox, "7").fails(74, &["cannot create", "mark", "Permission denied"]);
    allow(&folder, 0o755);
    assert_eq!(files(&sandbox), ["tools"]);
}

#[test]
fn concurrent_checks_pass_in_fence_order() {
    const THREADS: usize = 4;
    const FENCES: u64 = 120;
    let sandbox = Sandbox::new();
    let next = AtomicU64::new(1);
    let passed = thread::scope(|scope| {
        let calling: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut passed = Vec::new();
                    loop {
                        let token = next.fetch_add(1, Ordering::Relaxed);
                        if token > FENCES {
                            return passed;
                        }
                        let ended = check(&sandbox, token);
                        match ended.code() {
                            0 => passed.push(token),
                            76 => assert!(ended.stderr.contains("older than"), "{ended:?}"),
                            _ => panic!("{ended:?}"),
                        }
                        let stands: u64 = mark(&sandbox).trim_end().parse().unwrap();
                        assert!(stands >= token, "{token} was followed by {stands}");
                    }
                })
            })
            .collect();
        calling
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(mark(&sandbox), format!("{FENCES}\n"));
    assert!(passed.contains(&FENCES), "the greatest passes in any order");
    assert_eq!(files(&sandbox), ["mark"]);
}

#[test]
fn concurrent_first_checks_pass_unless_older() {
    for _ in 0..5 {
        let sandbox = Sandbox::new();
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| assert_eq!(check(&sandbox, 7).code(), 0));
            }
        });
        assert_eq!(
            (mark(&sandbox), files(&sandbox)),
            ("7\n".into(), vec!["mark".into()])
        );
    }
}

#[test]
fn killed_check_leaves_a_whole_number() {
    let sandbox = Sandbox::new();
    check(&sandbox, 1);
    let mut stood = 1;
    for token in 2..80_u64 {
        let args = ["fence", "check", "--high-water", "mark", &token.to_string()];
        let running = sandbox.start(&args);
        // The signal comes at a different moment for each token.
        for _ in 0..token * 4 {
            assert!(!mark(&sandbox).is_empty());
        }
        running.signal(Signal::SIGKILL);
        let ended = running.wait();
        let stands: u64 = mark(&sandbox).trim_end().parse().unwrap();
        assert!(
            stands == stood || stands == token,
            "{stands} after {stood} and {token}"
        );
        if ended.status.code() == Some(0) {
            assert_eq!(stands, token, "it passed, and is remembered");
        }
        stood = stands;
    }
    assert_eq!(check(&sandbox, 1000).code(), 0, "nobody is in its way");
    check(&sandbox, 999).fails(76, &["older than 1000"]);
}
