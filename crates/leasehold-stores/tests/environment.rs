//! The store that the environment names, as a program of its own finds it.
#![cfg(all(unix, feature = "env"))]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::Command;

/// Returns what `from_env` finds in a process with these variables alone.
fn found(variables: &[(&str, &str)]) -> String {
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "the other tests run it in a process of its own"]
fn child() {
    match leasehold_stores::from_env() {
        Ok(store) => println!("{store:?}"),
        Err(error) => println!("{:?}: {error}", error.kind()),
    }
}

#[test]
fn variables_and_file_name_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &Path, text: &str| std::fs::write(file, text).unwrap();
    let file = folder.path().join("leasehold.toml");
    write(&file, "ttl = '1m'\nstore = 'redis://:secret@from-file'");
    let file = file.to_str().unwrap();

    let by_file = found(&[("LEASEHOLD_CONFIG", file)]);
    assert!(by_file.contains("from-file"), "{by_file}");
    let both = [
        ("LEASEHOLD_CONFIG", file),
        ("LEASEHOLD_STORE", "postgres://app@from-variable/app"),
        ("LEASEHOLD_PASSWORD", "secret"),
    ];
    let by_variable = found(&both);
    assert!(by_variable.contains("from-variable"), "{by_variable}");
    for shown in [by_file, by_variable] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn errors_name_their_source_without_passwords() {
    let nothing = found(&[("HOME", "/nonexistent")]);
    assert!(
        nothing.contains("InvalidInput: no store configured; set LEASEHOLD_STORE"),
        "{nothing}"
    );
    let wrong = found(&[("LEASEHOLD_STORE", "redis://u:secret@a:port")]);
    assert!(
        wrong.contains("InvalidInput: LEASEHOLD_STORE: ") && !wrong.contains("secret"),
        "{wrong}"
    );
}
