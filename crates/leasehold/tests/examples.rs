//! Runs each example.
#![allow(missing_docs, reason = "tests name themselves")]

use std::collections::BTreeSet;
use std::path::Path;

macro_rules! examples {
    ($($name:ident),+ $(,)?) => {
        #[path = "../examples"]
        mod examples {
            $(pub(crate) mod $name;)+
        }

        $(#[test]
        fn $name() {
            examples::$name::main().expect("the example succeeds");
        })+

        /// The examples that run here.
        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

examples! {
    axum_idempotency,
    blocking,
    cancellation_token,
    exclusive_job,
    fenced_sql,
    graceful_shutdown,
    handle,
    leader_election,
    once,
    read_write,
    semaphore,
    service,
    several_locks,
    testing,
    try_acquire,
    wait_with_timeout,
}

#[test]
fn each_example_runs_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = std::fs::read_dir(folder).expect("the examples");
    let names = files.map(|file| {
        let path = file.expect("a file").path();
        path.file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    });
    let run: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(names.collect::<BTreeSet<String>>(), run);
}

#[test]
fn page_about_services_shows_the_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).expect("a file");
    let (page, example) = (
        read("../../docs/recipes/service.md"),
        read("examples/service.rs"),
    );
    let mut parts = page.split("```rust\n");
    let mut before = parts.next().expect("a text");
    for part in parts {
        let (code, after) = part.split_once("```\n").expect("the end of a code");
        if !before.ends_with("<!-- sqlx is not built here -->\n") {
            assert!(example.contains(code), "{code}");
        }
        before = after;
    }
}
