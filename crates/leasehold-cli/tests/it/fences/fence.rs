//! `fence check`, which scripts use to compare fences.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nix::sys::signal::Signal;

use crate::support::harness::Sandbox;
use crate::support::program::Ended;

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
    assert_eq!(about(&after), about(&before));
    assert_eq!(mark(&sandbox), "9\n");
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
    // The file already has this fence.
    as_nobody(&sandbox, "5").succeeds();
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
