//! Runs the console examples of a page in a shell.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

use std::path::Path;
use std::time::Duration;

use regex::Regex;
use snapbox::Redactions;
use snapbox::cmd::Command;

/// What differs from run to run.
const VALUES: [(&str, &str); 5] = [
    ("[PID]", r"\(pid (?<redacted>\d+) on "),
    ("[HOST]", r"\(pid \S+ on (?<redacted>[^)]+)\)"),
    ("[TIME]", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z"),
    ("[FENCE]", r"\b\d{16}\b"),
    (
        "[SPAN]",
        r"(?:expires in|closed for|ended \S+ after) (?<redacted>\d+m?s(?: \d+ms)?)",
    ),
];

/// The Redis servers of the pages.
pub(crate) const HOSTS: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"];

/// The fence in the commands of a page, and a shell expression for the fence of the lock in the test.
const FENCE: (&str, &str) = (
    "1795452510401928",
    r#"$(leasehold status --json deploy | grep -oP '"fence":\K\d+')"#,
);

/// Runs the examples of `page` in a shell in `folder`, with the URLs of `servers` for [`HOSTS`], and compares the session
/// with the page. The shell also finds the programs in `folder/bin`.
pub(crate) fn assert_session(page: &str, servers: &[String], folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let shown = console_blocks(&text);
    assert!(!shown.is_empty(), "{page} has no console examples");
    let printed = run_session(&script(&shown, servers, ""), folder);
    // The hosts of the page are ids: all servers run on this machine.
    let address = Regex::new(r"127\.0\.0\.1:\d+ \(id ([^)]+)\)").unwrap();
    let printed = address.replace_all(&printed, "$1");
    let values = values();
    snapbox::Assert::new().eq(values.redact(&printed), values.redact(&shown));
}

pub(crate) fn values() -> Redactions {
    let mut values = Redactions::new();
    let patterns = VALUES.map(|(name, pattern)| (name, Regex::new(pattern).unwrap()));
    values.extend(patterns).unwrap();
    values
}

/// What a shell prints that runs `script` in `folder`.
pub(crate) fn run_session(script: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_leasehold"));
    let folders = [folder.join("bin"), program.parent().unwrap().into()].into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
    // A program in the background of a script, or of nohup, inherits ignored signals.
    let output = Command::new("env")
        .args(["--default-signal=HUP,INT,QUIT", "bash", "-c", script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder)
        .envs(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE", file)))
        .stderr_to_stdout()
        .timeout(Duration::from_secs(180))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of all console blocks of a page.
pub(crate) fn console_blocks(page: &str) -> String {
    let blocks = page.split("```console\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .collect()
}

/// A shell script that runs the commands of `shown`, and prints each one before it runs, as a terminal
/// shows it. The exit code of the last command stays what it was, for `echo $?`. With `code` as `afterwards`,
/// the script also prints the exit code of each command that fails, as `? 64`.
pub(crate) fn script(shown: &str, servers: &[String], afterwards: &str) -> String {
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
        for (host, url) in HOSTS.iter().zip(servers) {
            command = command.replace(&format!("redis://{host}"), url);
        }
        command = command.replace(FENCE.0, FENCE.1);
        let typed = typed.replace('\'', r"'\''");
        script += &format!("show '{typed}'\n{command}\n{afterwards}\n");
    }
    script
}
