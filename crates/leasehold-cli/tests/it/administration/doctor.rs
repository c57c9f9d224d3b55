//! `doctor` on files, and what it refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::harness::{PROGRAM, Sandbox};
use crate::support::program::{Ended, assert_fields};
use crate::support::pty::OnTerminal;

/// The object that it printed.
#[track_caller]
pub(crate) fn report(ended: &Ended) -> Value {
    assert_eq!(ended.stderr, "", "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["version"], 1);
    report
}

/// The exit code of `doctor`, and the object that it prints.
pub(crate) fn doctor(sandbox: &Sandbox) -> (i32, Value) {
    let ended = sandbox.run("doctor --json");
    (ended.code(), report(&ended))
}

/// A check of the store, or of one of its servers.
#[track_caller]
pub(crate) fn check<'a>(of: &'a Value, id: &str) -> &'a Value {
    let mut checks = of["checks"].as_array().unwrap().iter();
    let found = checks.find(|it| it["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {of}"))
}

/// What a check found, and the advice.
#[track_caller]
pub(crate) fn found(of: &Value, id: &str) -> String {
    let check = check(of, id);
    format!("{} {} {}", check["found"], check["why"], check["remedy"])
}

#[track_caller]
pub(crate) fn verdict(of: &Value, id: &str) -> String {
    let found = check(of, id);
    let is_well = found["verdict"] == "green";
    assert_eq!(found["remedy"].is_null(), is_well, "{found}");
    assert_eq!(found["why"].is_null(), is_well, "{found}");
    found["verdict"].as_str().unwrap().to_owned()
}

/// Asserts that the manual has every id of the report.
#[track_caller]
pub(crate) fn is_documented(sandbox: &Sandbox, report: &Value) {
    let page = sandbox.run("man doctor").stdout;
    let members = report["members"].as_array().unwrap();
    for part in [report].into_iter().chain(members) {
        for check in part["checks"].as_array().unwrap() {
            let id = check["id"].as_str().unwrap();
            assert!(page.contains(&format!("`{id}`")), "{id}: {page}");
        }
        for fact in part["facts"]
            .as_object()
            .into_iter()
            .flat_map(|it| it.keys())
        {
            assert!(page.contains(&format!("`{fact}`")), "{fact}: {page}");
        }
    }
}

#[test]
fn healthy_files_are_green_and_nothing_is_created() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("doctor --json").succeeds();
    let found = report(&ended);
    let fields = json!({"verdict": "green", "members": [], "voting": null, "needed": null});
    assert_fields(&found, fields);
    for check in ["folder", "file_system", "fences", "room", "locks"] {
        assert_eq!(verdict(&found, check), "green");
    }
    is_documented(&sandbox, &found);
    assert!(!sandbox.path("locks").exists());
    let local = sandbox.run("doctor --local --all");
    assert!(local.stdout.contains("folder"), "{local:?}");
}

#[test]
fn locks_that_are_held_are_counted_and_stay() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("x", "held");
    let names = || {
        let entries = fs::read_dir(sandbox.path("locks")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name())
            .collect::<Vec<_>>()
    };
    let before = names();
    let ended = sandbox.run("doctor --all");
    assert_eq!((ended.code(), &*ended.stderr), (0, ""), "{ended:?}");
    for part in [
        "1 lock file, 1 held",
        "green  flock",
        "\n7 green, 0 yellow, 0 red\n",
    ] {
        assert!(ended.stdout.contains(part), "no {part:?} in {ended:?}");
    }
    let short = sandbox.run("doctor").stdout;
    assert!(!short.contains("green  "), "{short}");
    assert!(short.ends_with("\n7 green, 0 yellow, 0 red\n"), "{short}");
    assert_eq!(names(), before);
    assert!(!sandbox.is_free("x"));
    drop(holder);
}

#[test]
fn bad_folder_is_red_and_78() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("locks")).unwrap();
    fs::set_permissions(sandbox.path("locks"), fs::Permissions::from_mode(0o777)).unwrap();
    let ended = sandbox.run("doctor --json");
    let found = report(&ended);
    let owner = verdict(&found, "owner");
    assert_eq!((ended.code(), &*owner), (78, "red"), "{found}");
    fs::remove_dir(sandbox.path("locks")).unwrap();
    fs::write(sandbox.path("locks"), "").unwrap();
    let ended = sandbox.run("doctor");
    assert_eq!(ended.code(), 78, "{ended:?}");
    assert!(ended.stdout.contains("red    folder"), "{ended:?}");
    let ended = sandbox.run("doctor --json --store file:/proc/locks");
    let file_system = verdict(&report(&ended), "file_system");
    assert_eq!((ended.code(), &*file_system), (78, "red"));
}

#[test]
fn uncreatable_folder_is_red() {
    let sandbox = Sandbox::new();
    crate::nobody::copy_program(&sandbox);
    let mode = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(sandbox.path("."), mode(0o555)).unwrap();
    let ended = crate::nobody::run(&sandbox, "doctor --json");
    fs::set_permissions(sandbox.path("."), mode(0o755)).unwrap();
    assert_eq!(ended.code(), 78, "{ended:?}");
    assert_eq!(verdict(&report(&ended), "folder"), "red", "{ended:?}");
}

/// Whether there is a sequence that sets colours, and not only one that clears the status line.
fn has_colour(screen: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || c == ';';
    let mut sequences = screen.split("\x1b[").skip(1);
    sequences.any(|sequence| sequence.trim_start_matches(is_number).starts_with('m'))
}

#[test]
fn colours_need_a_terminal_or_the_option() {
    let sandbox = Sandbox::new();
    sandbox.run("run x true");
    let (code, screen) = OnTerminal::leasehold(&sandbox, "doctor --all").ends();
    assert_eq!(code, 0, "{screen}");
    assert!(
        screen.contains("\x1b[32mgreen") && has_colour(&screen),
        "{screen}"
    );
    for (variable, option) in [
        ("NO_COLOR=1", ""),
        ("TERM=dumb", ""),
        ("A=b", "--color never"),
    ] {
        let plain = format!("env {variable} {PROGRAM} doctor --all {option}");
        let (_, screen) = OnTerminal::start(&sandbox, &plain).ends();
        assert!(!has_colour(&screen), "{plain:?}: {screen}");
    }
    let plain = sandbox.run("doctor --all").stdout;
    assert!(!plain.contains('\x1b'), "{plain}");
    let forced = sandbox.run("--color always doctor --all").stdout;
    assert!(forced.contains("\x1b[32mgreen"), "{forced}");
}

#[test]
fn an_error_is_red_on_a_terminal() {
    let sandbox = Sandbox::new();
    let wrong = "status --store x:y z";
    let (code, screen) = OnTerminal::leasehold(&sandbox, wrong).ends();
    assert_eq!(code, 64, "{screen}");
    assert!(screen.contains("\x1b[31mleasehold:\x1b[0m "), "{screen}");
    let plain = sandbox.run(wrong).stderr;
    assert!(plain.starts_with("leasehold: "), "{plain}");
    let json = sandbox.run(&format!("--color always {wrong} --json"));
    assert!(!json.stderr.contains('\x1b'), "{json:?}");
}
