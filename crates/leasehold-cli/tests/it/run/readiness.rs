//! What a service manager, a probe and hooks see of the lock.

use std::fs;
#[cfg(target_os = "linux")]
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use leasehold_testkit::servers::until;

use crate::support::harness::Sandbox;
use crate::support::program::{Running, sh};

/// The socket of a service manager.
struct Manager(UnixDatagram);

impl Manager {
    fn new(sandbox: &Sandbox) -> Self {
        Self::at(UnixDatagram::bind(sandbox.path("notify")).unwrap())
    }

    fn at(socket: UnixDatagram) -> Self {
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self(socket)
    }

    /// Starts `leasehold` as its service, with another variable.
    fn start(sandbox: &Sandbox, variable: (&str, &str), args: &[String]) -> Running {
        let mut command = sandbox.leasehold();
        command
            .env("NOTIFY_SOCKET", sandbox.path("notify"))
            .env(variable.0, variable.1)
            .args(args);
        sandbox.spawn(command)
    }

    /// The next message.
    #[track_caller]
    fn next(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }
}

#[test]
fn service_is_ready_once_it_holds_the_lock() {
    let sandbox = Sandbox::new();
    let first = sandbox.hold("x", "held");
    let manager = Manager::new(&sandbox);
    for command in ["run x", "elect x"] {
        let service = Manager::start(
            &sandbox,
            ("UNUSED", ""),
            &sh(command, "while [ ! -e end ]; do sleep 0.02; done"),
        );
        if command == "run x" {
            let waits = manager.next();
            assert!(waits.starts_with("STATUS=waiting "), "{waits}");
            assert!(waits.contains("for lock \"x\""), "{waits}");
            sandbox.let_go();
        }
        let ready = manager.next();
        assert!(
            ready.starts_with("READY=1\nSTATUS=holds lock \"x\", fence "),
            "{ready}"
        );
        fs::write(sandbox.path("end"), "").unwrap();
        service.wait().succeeds();
        fs::remove_file(sandbox.path("end")).unwrap();
    }
    first.wait().succeeds();
}

/// Its name is in no file system.
#[test]
#[cfg(target_os = "linux")]
fn abstract_socket_of_a_service_manager_is_notified() {
    use std::os::linux::net::SocketAddrExt as _;

    let sandbox = Sandbox::new();
    let name = sandbox.path("notify").display().to_string();
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = Manager::at(UnixDatagram::bind_addr(&address).unwrap());
    let mut command = sandbox.leasehold();
    command
        .env("NOTIFY_SOCKET", format!("@{name}"))
        .args(["run", "x", "true"]);
    sandbox.spawn(command).wait().succeeds();
    let ready = manager.next();
    let begin = "READY=1\nSTATUS=holds lock \"x\", fence ";
    assert!(ready.starts_with(begin), "{ready}");
}

#[test]
fn watchdog_hears_of_a_program_that_lives() {
    let sandbox = Sandbox::new();
    let manager = Manager::new(&sandbox);
    let watchdog = ("WATCHDOG_USEC", "50000");
    let service = Manager::start(&sandbox, watchdog, &sh("run x", "read go < gate"));
    sandbox.gate("gate");
    let mut pings = 0;
    while pings < 3 {
        pings += usize::from(manager.next().trim_end() == "WATCHDOG=1");
    }
    drop(service);
}

#[test]
fn watchdog_without_a_limit_delays_nothing() {
    let sandbox = Sandbox::new();
    let _manager = Manager::new(&sandbox);
    let run = ["run", "x", "true"].map(str::to_owned);
    let service = Manager::start(&sandbox, ("WATCHDOG_USEC", "0"), &run);
    service.wait().succeeds();
}

#[test]
fn ready_file_exists_while_the_lock_is_held() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("ready"), "of a killed run").unwrap();
    let first = sandbox.hold("x", "held");
    let args = "run -v --ready-file ready x";
    let second = sandbox.start(&sh(args, "cat ready; read go < gate"));
    second.says("waiting for ");
    assert!(!sandbox.path("ready").exists(), "nothing is held yet");
    sandbox.gate("gate");
    sandbox.let_go();
    second.prints("x ");
    sandbox.open_gate("gate");
    second.wait().succeeds();
    assert!(!sandbox.path("ready").exists(), "the lock is released");
    first.wait().succeeds();
    let on_lost = "test -e ready || echo gone > probe";
    let args = [
        "run",
        "--max-hold",
        "1s",
        "--ready-file",
        "ready",
        "--on-lost",
        on_lost,
    ];
    let lost = sandbox.run(&[&args[..], &["x", "sleep", "100"]].concat());
    lost.fails(76, &["--max-hold reached"]);
    assert_eq!(sandbox.line_in("probe"), "gone", "when the lock is lost");
    assert!(!sandbox.path("ready").exists(), "the lock is lost");
}

#[test]
fn ready_file_that_cannot_be_written_is_74() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("run --ready-file none/ready x touch ran");
    ended.fails(74, &["cannot write --ready-file none/ready"]);
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn hooks_run_one_after_the_other() {
    let sandbox = Sandbox::new();
    let note = "echo $LEASEHOLD_EVENT $LEASEHOLD_NAME $LEASEHOLD_FENCE $LEASEHOLD_REASON >> events";
    let slow = format!("until [ -e lost ]; do sleep 0.02; done; {note}; exit 3");
    let mut args = [
        "run",
        "--max-hold",
        "1s",
        "--on-acquired",
        &slow,
        "--on-lost",
        note,
    ]
    .map(str::to_owned)
    .to_vec();
    args.extend(
        [
            "x",
            "--",
            "sh",
            "-c",
            "trap 'touch lost' TERM; sleep 100 & wait",
        ]
        .map(str::to_owned),
    );
    let ended = sandbox.run(&args);
    ended.fails(76, &["warning: the hook", "failed: exit status: 3"]);
    assert!(!ended.stderr.contains("still runs"), "{ended:?}");
    let events = sandbox.lines_in("events");
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(events[0].starts_with("acquired x "), "{events:?}");
    assert!(
        events[1].starts_with("lost x --max-hold reached"),
        "{events:?}"
    );
}

#[test]
fn loss_does_not_wait_for_a_stuck_hook() {
    let sandbox = Sandbox::new();
    let args = "run --max-hold 1s --on-lost".split(' ');
    let mut args: Vec<&str> = args.collect();
    args.extend([
        "echo L > lost",
        "--on-acquired",
        "sleep 30",
        "x",
        "sleep",
        "100",
    ]);
    let ended = sandbox.run(&args);
    ended.fails(76, &["--on-acquired still runs; --on-lost runs next to it"]);
    assert_eq!(sandbox.line_in("lost"), "L");
    assert!(!ended.stderr.contains("is left alone"), "{ended:?}");
}

#[test]
fn hooks_of_a_hold_see_no_password() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.leasehold();
    command.env("LEASEHOLD_PASSWORD", "hunter2").args([
        "hold",
        "--ignore-stdin",
        "--on-acquired",
        "env > seen",
        "x",
    ]);
    let hold = sandbox.spawn(command);
    until("the hook", || {
        sandbox
            .lines_in("seen")
            .iter()
            .any(|line| line == "LEASEHOLD_NAME=x")
    });
    let seen = sandbox.lines_in("seen").join("\n");
    assert!(!seen.contains("hunter2"), "{seen}");
    drop(hold);
}
