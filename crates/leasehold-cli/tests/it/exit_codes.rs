use std::fs;

use leasehold::Key;
use leasehold_file::FileStore;

use crate::harness::Sandbox;

#[test]
fn the_commands_code_comes_through_exactly() {
    let sandbox = Sandbox::new();
    for code in [0, 1, 7, 64, 75, 76, 125, 127, 255] {
        let script = format!("exit {code}");
        let ended = sandbox.run(&["run", "x", "--", "sh", "-c", &script]);
        assert_eq!(ended.code(), code);
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn death_by_signal_is_128_plus_number() {
    let sandbox = Sandbox::new();
    for signal in [1, 2, 9, 13, 15, 36] {
        let script = format!("kill -{signal} $$; sleep 1000");
        let ended = sandbox.run(&["run", "x", "--", "sh", "-c", &script]);
        assert_eq!(ended.code(), 128 + signal, "{ended:?}");
    }
}

#[test]
fn missing_command_is_127_and_unusable_is_126() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["run", "x", "--", "no-such-command"]);
    ended.fails(127, &["no-such-command", "No such file or directory"]);
    fs::write(sandbox.path("text"), "no program").unwrap();
    let ended = sandbox.run(&["run", "x", "--", "./text"]);
    ended.fails(126, &["./text", "Permission denied"]);
    sandbox.run(&["run", "x", "--", ""]).fails(127, &[]);
    assert!(sandbox.is_free("x"), "the lock is freed all the same");
}

#[test]
fn a_mistake_in_the_arguments_is_64() {
    let sandbox = Sandbox::new();
    sandbox.run(&["run", "x"]).fails(64, &["<CMD>..."]);
    sandbox
        .run(&["run", "--shred", "x", "true"])
        .fails(64, &["--shred"]);
    sandbox.run(&["lock", "x"]).fails(64, &["lock"]);
    sandbox
        .run(&["run", "-n", "-w", "1s", "x", "true"])
        .fails(64, &["--no-wait", "--wait"]);
    let help = sandbox.run(&["run", "--help"]);
    assert_eq!(help.code(), 0);
    assert!(
        help.stdout.contains("76     the lock was lost"),
        "{}",
        help.stdout
    );
}

#[test]
fn damaged_lock_file_is_65_and_unchanged() {
    let sandbox = Sandbox::new();
    let store = FileStore::open(sandbox.path("locks")).unwrap();
    let file = store.lock_file(&Key::new("x").unwrap());
    let damaged = vec![0xA5; 2048];
    fs::write(&file, &damaged).unwrap();
    let ended = sandbox.run(&["run", "x", "true"]);
    ended.fails(65, &["x", "damaged"]);
    assert_eq!(fs::read(&file).unwrap(), damaged);
}

#[test]
fn a_file_that_cannot_be_used_is_74() {
    let sandbox = Sandbox::new();
    let store = FileStore::open(sandbox.path("locks")).unwrap();
    let file = store.lock_file(&Key::new("x").unwrap());
    fs::create_dir(&file).unwrap();
    let file = file.display().to_string();
    sandbox.run(&["run", "x", "true"]).fails(74, &[&file]);
}

#[test]
fn arguments_that_are_not_utf8_reach_the_command() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    let mut command = sandbox.leasehold();
    command.args(["run", "x", "--", "sh", "-c", "printf %s \"$1\" > odd", "sh"]);
    command.arg(odd);
    assert_eq!(sandbox.spawn(command).wait().code(), 0);
    assert_eq!(fs::read(sandbox.path("odd")).unwrap(), odd.as_bytes());
}
