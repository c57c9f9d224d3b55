use std::process::Command;

use crate::harness::Sandbox;

#[test]
fn completions_are_made_for_every_shell_and_bash_takes_its_own() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = sandbox.run(&["completions", shell]);
        assert_eq!(ended.code(), 0);
        assert!(ended.stdout.contains("max-hold"), "{shell}");
        assert!(!ended.stdout.contains("__guardian"), "{shell}");
        std::fs::write(sandbox.path(shell), ended.stdout).unwrap();
    }
    let script = "source ./bash && COMP_WORDS=(leasehold run --gr) && COMP_CWORD=2 \
                  && _leasehold leasehold --gr run && echo ${COMPREPLY[@]}";
    let mut bash = Command::new("bash");
    sandbox.furnish(&mut bash);
    bash.args(["-c", script]);
    assert_eq!(sandbox.spawn(bash).wait().stdout, "--grace\n");
    sandbox.run(&["completions", "cmd"]).fails(64, &["cmd"]);
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_each_verb() {
    let sandbox = Sandbox::new();
    let page = sandbox.run(&["man"]).stdout;
    assert!(page.contains(".TH leasehold 1"), "{page}");
    assert!(
        page.contains("Exit codes") && !page.contains("guardian"),
        "{page}"
    );
    let page = sandbox.run(&["man", "run"]).stdout;
    assert!(page.contains(".TH leasehold-run 1"), "{page}");
    assert!(
        page.contains(r"\-\-max\-hold") && page.contains("76"),
        "{page}"
    );
    for option in ["shared", "permits", "also", "nested", r"lock\-delay"] {
        assert!(page.contains(&format!(r"\-\-{option}")), "{option}: {page}");
    }
    assert!(page.contains("LEASEHOLD_FENCES"), "{page}");
    let page = sandbox.run(&["man", "members"]).stdout;
    assert!(
        page.contains(r"\-\-clock\-tolerance") && page.contains("remove"),
        "{page}"
    );
    let page = sandbox.run(&["man", "bench"]).stdout;
    for part in [
        r"\-\-in\-flight",
        r"\-\-duration",
        "renewals_per_s",
        r"\-\-ttl",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = sandbox.run(&["man", "elect"]).stdout;
    for part in [r"\-\-observe", r"\-\-value", "campaigns", "LEASEHOLD_FENCE"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    sandbox.run(&["man", "fly"]).fails(
        64,
        &[
            "fly",
            "run, elect, once, hold, acquire, renew, release, status, ls, waiters, break, init, members, doctor, bench, fence",
        ],
    );
}
