//! Runs the console examples of README.md, docs/commands.md and a recipe, and the sessions in `transcripts`, and compares what
//! they print with what the files show.
//!
//! The examples of a page are one session of a shell in an empty folder. A page shows a line that begins with
//! `$ ` for each command (`> ` continues it), and below it what the command prints on stdout and stderr.
//! Before the two sides are compared, values that differ from run to run are replaced on both; `VALUES` in `session` lists
//! them. `HOSTS` in `session` lists the servers that the test starts. The commands print to a pipe, so a page must not show
//! output that looks different on a terminal.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod session;

use std::path::Path;

use leasehold_testkit::servers::{RedisServer, RedisSet};
use regex::Regex;
use snapbox::Data;

use session::{HOSTS, assert_session, run_session, script, values};

#[test]
fn readme_examples_print_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    assert_session("README.md", &[], folder.path());
}

#[test]
fn command_examples_with_redis_print_what_is_shown() {
    let servers = RedisSet::start_each(HOSTS.len(), &RedisServer::builder().durable());
    let folder = tempfile::tempdir().unwrap();
    assert_session("docs/commands.md", &servers.urls(), folder.path());
}

#[test]
fn deployment_recipe_prints_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    assert_session("docs/recipes/deployments.md", &[], folder.path());
}

#[test]
fn refused_values_get_the_recorded_messages() {
    assert_transcript("refused-values.txt");
}

#[test]
fn exit_codes_are_as_recorded() {
    assert_transcript("exit-codes.txt");
}

#[test]
fn nested_runs_print_what_is_recorded() {
    assert_transcript("nested-runs.txt");
}

#[test]
fn fence_check_prints_what_is_recorded() {
    assert_transcript("fence-check.txt");
}

/// Runs the commands of a session in `transcripts`, and compares what they print, with the exit code of each command
/// that fails. `SNAPSHOTS=overwrite` writes the file anew.
fn assert_transcript(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let path = folder.join(name);
    let recorded = std::fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let printed = run_session(&script(&recorded, &[], "code"), folder.path());
    let help = r"(\n\nUsage: .*(\n +leasehold .*)*)?\n\nFor more information, try '--help'.\n";
    let printed = Regex::new(help).unwrap().replace_all(&printed, "\n");
    let mut values = values();
    let inside = folder.path().display().to_string();
    values.insert("[FOLDER]", inside).unwrap();
    let assert = snapbox::Assert::new().action_env("SNAPSHOTS");
    assert.eq(values.redact(&printed), Data::read_from(&path, None).raw());
}
