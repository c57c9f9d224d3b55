use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::*;
use crate::runtime::runtime;

fn shown(path: &Path, fence: u64, wait_max: Duration) -> Result<Verdict, Failure> {
    let file = HighWater::at(path)?;
    let fence = Fence::new(fence).unwrap();
    runtime()?.block_on(file.check(fence, wait_max))
}

#[test]
fn only_a_whole_number_is_one() {
    let number = |text: &str| parse(text.as_bytes()).map(Fence::get);
    assert_eq!(number("7\n"), Some(7));
    assert_eq!(number("18446744073709551615"), Some(u64::MAX));
    for wrong in [
        "",
        "\n",
        "0\n",
        "-1",
        "+1",
        "7\n\n",
        "7 ",
        " 7",
        "7\n8\n",
        "1e3",
        "18446744073709551616",
    ] {
        assert_eq!(number(wrong), None, "{wrong:?}");
    }
    assert_eq!(parse(b"7\xff"), None);
}

#[test]
fn overlong_number_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    let text = format!("{}12345\n", "0".repeat(63));
    fs::write(&path, &text).unwrap();
    let failure = shown(&path, 7, Duration::from_secs(30)).unwrap_err();
    assert_eq!(failure.code, ExitCode::CORRUPT, "{failure}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn non_utf8_name_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(OsStr::from_bytes(b"fence-\xff"));
    let wait_max = Duration::from_secs(30);
    shown(&path, 6, wait_max).unwrap();
    // Another file in the folder, whose name would be the same text.
    let lossy = folder.path().join(".fence-\u{fffd}.leasehold-next");
    fs::write(&lossy, "").unwrap();
    shown(&path, 7, wait_max).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "7\n");
    assert!(lossy.exists(), "it belongs to another file");
}

#[test]
fn leftovers_of_a_killed_check_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    fs::write(&path, "5\n").unwrap();
    fs::write(folder.path().join(".fence.leasehold-next"), "9").unwrap();
    let before = Fence::new(5);
    let wait_max = Duration::from_secs(30);
    assert_eq!(
        shown(&path, 6, wait_max).unwrap(),
        Verdict::Passes { before }
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "6\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn who_makes_the_file_second_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    let file = HighWater::at(&path).unwrap();
    // Another process creates the file between the check and the creation.
    fs::write(&path, "9\n").unwrap();
    assert!(!file.make(Fence::new(5).unwrap()).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "9\n");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn wait_for_a_stopped_check_has_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence");
    fs::write(&path, "5\n").unwrap();
    let file = File::open(&path).unwrap();
    let held = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
    let failure = shown(&path, 6, Duration::from_millis(20)).unwrap_err();
    assert_eq!(failure.code, ExitCode::IO);
    assert!(failure.to_string().contains("may be stopped"), "{failure}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "5\n");
    drop(held);
    shown(&path, 6, Duration::from_secs(30)).unwrap();
}
