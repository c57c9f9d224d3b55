//! The example `late_write`, which `cargo test` builds.

use std::process::Command;

const SHOWN: [&str; 17] = [
    "the first holder has the lock with fence N, and stands still",
    "the second holder has it with fence N, and writes",
    "  a SQLite row without the check: landed",
    "  a SQLite row with the check: landed",
    "  a Redis key without the check: landed",
    "  a Redis key with the check: landed",
    "the first holder goes on, and writes too late",
    "  a SQLite row without the check: landed",
    "  a SQLite row with the check: REFUSED",
    "  a Redis key without the check: landed",
    "  a Redis key with the check: REFUSED",
    "its guard is valid: false",
    "what is there now",
    "  SQLite, checked: the second holder's",
    "  SQLite, unchecked: the first holder's, late",
    "  Redis, checked: the second holder's",
    "  Redis, unchecked: the first holder's, late",
];

#[test]
fn only_the_fence_check_refuses_a_late_write() {
    let tests = std::env::current_exe().unwrap();
    let example = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples/late_write");
    assert!(
        example.exists(),
        "{} is not built: `cargo test -p leasehold-redis` builds it, with --test it does not",
        example.display()
    );
    let output = Command::new(example).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let lines: Vec<String> = said.lines().map(without_numbers).collect();
    assert_eq!(lines, SHOWN, "{said}");
}

/// Fences are microseconds of the wall clock, so they differ each time.
fn without_numbers(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let digits = word.trim_end_matches(',');
        match digits.parse::<u64>() {
            Ok(_) => format!("N{}", &word[digits.len()..]),
            Err(_) => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
