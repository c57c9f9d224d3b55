//! The `flock(1)` of util-linux on the same files.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use leasehold::Mode;

use crate::store_fixture::{StoreFixture, key, permit};

/// A `flock` that holds `path` until it is dropped.
pub(crate) struct Flock(Child);

impl Flock {
    pub(crate) fn hold(path: &Path, mode: Mode) -> Self {
        let option = if mode == Mode::Shared { "-s" } else { "-x" };
        let mut child = Command::new("flock")
            .args([option, "-n", "--no-fork"])
            .arg(path)
            .args(["sh", "-c", "echo held; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut answer = BufReader::new(child.stdout.take().unwrap());
        answer.read_line(&mut line).unwrap();
        assert_eq!(line, "held\n", "flock(1) did not get the lock");
        Self(child)
    }
}

impl Drop for Flock {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Whether `flock(1)` would get the lock now; it gives it back.
pub(crate) fn flock_gets(path: &Path, option: &str) -> bool {
    let status = Command::new("flock")
        .args([option, "-n", "-E", "75"])
        .arg(path)
        .arg("true")
        .status()
        .unwrap();
    match status.code() {
        Some(0) => true,
        Some(75) => false,
        other => panic!("flock(1) ended with {other:?}"),
    }
}

#[tokio::test]
async fn a_lock_of_ours_excludes_flock() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    for mode in [Mode::Exclusive, Mode::Shared, permit(3)] {
        let request = fixture.wants(mode);
        fixture.granted(&request).await;
        assert!(!flock_gets(&path, "-x"), "{mode}");
        assert_eq!(flock_gets(&path, "-s"), mode != Mode::Exclusive, "{mode}");
        fixture.released(&request).await;
        assert!(flock_gets(&path, "-x"), "{mode}");
    }
}

#[tokio::test]
async fn flock_command_excludes_ours_and_is_shown() {
    let fixture = StoreFixture::new();
    let path = fixture.lock_file("deploy");
    let shown = async || {
        let holders = fixture.holders().await.into_iter();
        holders.map(|it| (it.mode, it.owner)).collect::<Vec<_>>()
    };

    // It makes the file, which is then empty.
    let flock = Flock::hold(&path, Mode::Exclusive);
    for mode in [Mode::Exclusive, Mode::Shared, permit(3)] {
        fixture.busy(&fixture.wants(mode)).await;
    }
    assert_eq!(shown().await, [(Mode::Exclusive, None)]);
    assert_eq!(fixture.held_locks().await, [key("deploy")]);
    drop(flock);
    assert!(shown().await.is_empty() && fixture.held_locks().await.is_empty());

    // The kernel does not show which kind of shared holder it sees: permits do not exclude it.
    for mode in [Mode::Shared, permit(1)] {
        let flock = Flock::hold(&path, Mode::Shared);
        fixture.busy(&fixture.writer()).await;
        let request = fixture.wants(mode);
        fixture.granted(&request).await;
        assert!(flock_gets(&path, "-s"));
        let ours = (mode, Some(request.owner));
        assert_eq!(shown().await, [ours, (Mode::Shared, None)]);
        drop(flock);
        assert_eq!(shown().await, [ours]);
        fixture.released(&request).await;
    }
}

/// The common idiom `exec 9>file; flock 9` truncates the file, and with it the counter.
#[tokio::test]
async fn truncated_file_counts_as_new() {
    let fixture = StoreFixture::new();
    let before = fixture.pass("deploy", 1000).await;
    let script = "exec 9>\"$0\"; flock -n 9";
    let path = fixture.lock_file("deploy");
    let status = Command::new("sh").args(["-c", script]).arg(&path).status();
    assert!(status.unwrap().success());
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    assert!(fixture.pass("deploy", 2000).await > before);
}
