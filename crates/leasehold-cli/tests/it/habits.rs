//! Options and commands of other programs, which people type out of habit.

use crate::support::harness::Sandbox;

#[test]
fn foreign_options_get_their_meaning_here() {
    let sandbox = Sandbox::new();
    for (args, hint) in [
        ("run --timeout 5 x -- touch ran", "-w SPAN (--wait)"),
        ("run --timeout=5 x -- touch ran", "-w SPAN (--wait)"),
        ("run -x x touch ran", "exclusive unless -s"),
        ("run -c x touch", "run NAME -- sh -c 'COMMAND'"),
        ("run --nonblock x touch ran", "-n (--no-wait)"),
        ("run -q x touch ran", "2> /dev/null"),
        ("run -v x touch ran", "--json"),
        ("status --watch x", "watch leasehold status NAME"),
        ("ls -o json", "--json"),
        ("ls --format json", "--json"),
        ("lock x", "run NAME -- COMMAND"),
        ("unlock x", "release"),
        ("top", "watch leasehold ls"),
        ("version", "leasehold --version"),
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
    refused.fails(127, &["cannot run \"echo hi\"", "sh -c \"echo hi\""]);
    let plain = sandbox.run("run -n x no-such-program");
    assert!(!plain.stderr.contains("sh -c"), "{plain:?}");
}
