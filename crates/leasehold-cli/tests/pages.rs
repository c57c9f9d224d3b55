//! Runs the console examples of README.md and docs/commands.md, and the sessions in `transcripts`, and compares what
//! they print with what the files show.
//!
//! The examples of a page are one session of a shell in an empty folder. A page shows a line that begins with
//! `$ ` for each command (`> ` continues it), and below it what the command prints on stdout and stderr.
//! Before the two sides are compared, values that differ from run to run are replaced on both; `VALUES` lists
//! them. `REDIS` lists the servers that the test starts. The commands print to a pipe, so a page must not show
//! output that looks different on a terminal.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

use std::path::Path;
use std::time::Duration;

use leasehold_testkit::servers::{RedisServer, RedisSet};
use regex::Regex;
use snapbox::cmd::Command;
use snapbox::{Data, Redactions};

/// What differs from run to run.
const VALUES: [(&str, &str); 5] = [
    ("[PID]", r"\(pid (?<redacted>\d+) on "),
    ("[HOST]", r"\(pid \S+ on (?<redacted>[^)]+)\)"),
    ("[TIME]", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z"),
    ("[FENCE]", r"\b\d{16}\b"),
    (
        "[SPAN]",
        r"(?:expires in|closed for) (?<redacted>\d+m?s(?: \d+ms)?)",
    ),
];

/// The Redis servers of the pages.
const REDIS: [&str; 4] = [
    "redis://10.0.0.1",
    "redis://10.0.0.2",
    "redis://10.0.0.3",
    "redis://10.0.0.9",
];

/// The fence in the commands of a page, and a shell expression for the fence of the lock in the test.
const FENCE: (&str, &str) = (
    "1795452510401928",
    r#"$(leasehold status --json deploy | grep -oP '"fence":\K\d+')"#,
);

#[test]
fn readme_examples_print_what_it_shows() {
    assert_session("README.md", &[]);
}

#[test]
fn command_examples_with_redis_print_what_is_shown() {
    let servers = RedisSet::start_each(REDIS.len(), &RedisServer::builder().durable());
    assert_session("docs/commands.md", &servers.urls());
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
    let help = r"(\n\nUsage: .*)?\n\nFor more information, try '--help'.\n";
    let printed = Regex::new(help).unwrap().replace_all(&printed, "\n");
    let mut values = values();
    let inside = folder.path().display().to_string();
    values.insert("[FOLDER]", inside).unwrap();
    let assert = snapbox::Assert::new().action_env("SNAPSHOTS");
    assert.eq(values.redact(&printed), Data::read_from(&path, None).raw());
}

/// Runs the examples of `page` in a shell, with `servers` for [`REDIS`], and compares the session with the page.
fn assert_session(page: &str, servers: &[String]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let shown = console_blocks(&text);
    assert!(!shown.is_empty(), "{page} has no console examples");
    let folder = tempfile::tempdir().unwrap();
    let printed = run_session(&script(&shown, servers, ""), folder.path());
    let values = values();
    snapbox::Assert::new().eq(values.redact(&printed), values.redact(&shown));
}

fn values() -> Redactions {
    let mut values = Redactions::new();
    let patterns = VALUES.map(|(name, pattern)| (name, Regex::new(pattern).unwrap()));
    values.extend(patterns).unwrap();
    values
}

/// What a shell prints that runs `script` in `folder`.
fn run_session(script: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_leasehold"));
    let folders = program.parent().map(Path::to_path_buf).into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
    // A program in the background of a script inherits ignored signals.
    let output = Command::new("env")
        .args(["--default-signal=INT,QUIT", "bash", "-c", script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder)
        .envs(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE", file)))
        .stderr_to_stdout()
        .timeout(Duration::from_secs(120))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of all console blocks of a page.
fn console_blocks(page: &str) -> String {
    let blocks = page.split("```console\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .collect()
}

/// A shell script that runs the commands of `shown`, and prints each one before it runs, as a terminal
/// shows it. The exit code of the last command stays what it was, for `echo $?`. With `code` as `afterwards`,
/// the script also prints the exit code of each command that fails, as `? 64`.
fn script(shown: &str, servers: &[String], afterwards: &str) -> String {
    let mut script = "show() { code=$?; printf '%s\\n' \"$1\"; return $code; }\n".to_owned();
    script += "code() { code=$?; [ $code = 0 ] || echo \"? $code\"; }\n";
    let mut lines = shown.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let (mut typed, mut command) = (line.to_owned(), command.to_owned());
        while let Some(more) = lines.next_if(|line| line.starts_with("> ")) {
            typed += &format!("\n{more}");
            command += &format!("\n{}", &more[2..]);
        }
        for (shown, started) in REDIS.iter().zip(servers) {
            command = command.replace(shown, started);
        }
        command = command.replace(FENCE.0, FENCE.1);
        let typed = typed.replace('\'', r"'\''");
        script += &format!("show '{typed}'\n{command}\n{afterwards}\n");
    }
    script
}
