//! Options and commands of other programs, which people type out of habit.

use crate::support::harness::Sandbox;

#[test]
fn foreign_options_get_their_meaning_here() {
    let sandbox = Sandbox::new();
    for (args, hint) in [
        ("--store file:///x run x -- touch ran", "run --store URL"),
        ("run --timeout 5 x -- touch ran", "-w SPAN (--wait)"),
        ("run --timeout=5 x -- touch ran", "-w SPAN (--wait)"),
        ("run -x x touch ran", "exclusive unless -s"),
        ("run --command x touch", "run NAME -c 'COMMAND'"),
        ("run --nonblock x touch ran", "-n (--no-wait)"),
        ("run --silent x touch ran", "-q (--quiet)"),
        ("status -f x", "--watch"),
        ("ls -o json", "--json"),
        ("ls --format json", "--json"),
        ("lock x", "run NAME -- COMMAND"),
        ("unlock x", "release"),
        ("watch", "ls --watch"),
        ("version", "leasehold --version"),
        ("run --conflict-exit-code 3 x touch ran", "-E CODE"),
        ("kill x", "`break`"),
        ("force-release x", "`break`"),
        ("ps", "`ls` lists"),
    ] {
        let refused = sandbox.run(args);
        refused.fails(64, &["tip: ", hint]);
        assert!(!refused.stderr.contains("as a value"), "{refused:?}");
    }
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn unknown_option_never_becomes_the_name() {
    let refused = Sandbox::new().run("run --xyzzy x true");
    refused.fails(64, &["unexpected argument '--xyzzy'"]);
    assert!(!refused.stderr.contains("tip:"), "{refused:?}");
}

#[test]
fn command_in_one_word_gets_a_hint() {
    let sandbox = Sandbox::new();
    let refused = sandbox.run(&["run", "-n", "x", "echo hi"]);
    refused.fails(127, &["cannot run \"echo hi\"", "run NAME -c \"echo hi\""]);
    let plain = sandbox.run("run -n x no-such-program");
    assert!(!plain.stderr.contains("run NAME -c"), "{plain:?}");
}

#[test]
fn options_of_flock_work() {
    let sandbox = Sandbox::new();
    let line = sandbox.run(&["run", "-w", "5", "x", "-c", "echo $LEASEHOLD_NAME; exit 3"]);
    assert_eq!((line.code(), &*line.stdout), (3, "x\n"), "{line:?}");
    let _holder = sandbox.hold("x", "pid");
    sandbox
        .run("run -w 0.3 x -c true")
        .fails(75, &["gave up after 300ms"]);
    sandbox
        .run(&["run", "x", "-c", "true", "--", "true"])
        .fails(64, &["-c"]);
    sandbox.run("run -w 5x x true").fails(64, &["5x"]);
    sandbox
        .run("run --ttl 5 x true")
        .fails(64, &["needs a unit"]);
}

#[test]
fn other_names_of_subcommands_work() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("x", "pid");
    for args in ["list", "show x"] {
        let shown = sandbox.run(args);
        let pid = holder.pid().to_string();
        assert!(shown.stdout.contains(&pid), "{shown:?}");
    }
}

#[test]
fn path_as_a_store_gets_its_url() {
    let sandbox = Sandbox::new();
    for path in ["/var/locks", "./locks", "~/locks"] {
        let refused = sandbox.run(&["run", "--store", path, "x", "true"]);
        refused.fails(64, &["file:///", path]);
    }
}

#[test]
fn path_as_a_name_is_not_the_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("deploy.lock");
    std::fs::write(&path, "").unwrap();
    let run = sandbox.run(&["run", "-v", path.to_str().unwrap(), "true"]);
    run.fails(0, &["flock on that file is not excluded"]);
    let quiet = sandbox.run(&["run", "-v", "deploy.lock", "true"]);
    assert!(!quiet.stderr.contains("flock"), "{quiet:?}");
}
