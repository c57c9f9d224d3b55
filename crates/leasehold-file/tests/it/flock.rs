//! The `flock(1)` of util-linux on the same files.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use leasehold::Mode;
use leasehold::store::{Inspection as _, Store};

use crate::world::{World, fence, is_busy, key};

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
    let world = World::new();
    let path = world.lock_file("deploy");
    let (claim, _) = world.take("deploy", 0).await;
    assert!(!flock_gets(&path, "-x") && !flock_gets(&path, "-s"));
    world.store.release(&claim).await.unwrap();
    assert!(flock_gets(&path, "-x"));
    let reader = world.shared("deploy", 0);
    fence(world.store.acquire(&reader).await);
    assert!(!flock_gets(&path, "-x") && flock_gets(&path, "-s"));
}

#[tokio::test]
async fn flock_command_excludes_ours_and_is_shown() {
    let world = World::new();
    let path = world.lock_file("deploy");
    let holders = async || world.store.holders(&key("deploy")).await.unwrap();
    let listed = async || world.store.list("", 10).await.unwrap();

    // It makes the file, which is then empty.
    let flock = Flock::hold(&path, Mode::Exclusive);
    assert!(is_busy(
        world.store.acquire(&world.claim("deploy", 0)).await
    ));
    assert!(is_busy(
        world.store.acquire(&world.shared("deploy", 0)).await
    ));
    let shown = holders().await;
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].mode, shown[0].owner), (Mode::Exclusive, None));
    assert_eq!(listed().await, [key("deploy")]);
    drop(flock);
    assert!(holders().await.is_empty() && listed().await.is_empty());

    let flock = Flock::hold(&path, Mode::Shared);
    assert!(is_busy(
        world.store.acquire(&world.claim("deploy", 0)).await
    ));
    let reader = world.shared("deploy", 0);
    fence(world.store.acquire(&reader).await);
    let shown = holders().await;
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!(
        shown.iter().filter(|holder| holder.owner.is_none()).count(),
        1
    );
    assert!(
        shown
            .iter()
            .any(|holder| holder.owner == Some(reader.owner))
    );
    drop(flock);
    assert_eq!(holders().await.len(), 1);
}

/// The common idiom `exec 9>file; flock 9` truncates the file, and with it the counter.
#[tokio::test]
async fn truncated_file_counts_as_new() {
    let world = World::new();
    let before = world.pass("deploy", 1000).await;
    let script = "exec 9>\"$0\"; flock -n 9";
    let path = world.lock_file("deploy");
    let status = Command::new("sh").args(["-c", script]).arg(&path).status();
    assert!(status.unwrap().success());
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    assert!(world.pass("deploy", 2000).await > before);
}
