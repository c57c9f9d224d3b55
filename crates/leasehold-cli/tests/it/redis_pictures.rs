//! The pictures in `docs/` were drawn once. These tests run the commands that they show, and look for the text of the
//! pictures in what the program prints today.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use leasehold_testkit::servers::{RedisServer, RedisSet, until};
use regex::Regex;

use crate::holds::hold::bash;
use crate::support::harness::Sandbox;
use crate::support::pty::OnTerminal;

/// A command in a picture, and the parts of its output that the picture shows.
struct Example {
    command: String,
    shown: Vec<String>,
}

impl Example {
    /// Asserts that `printed` has all parts, apart from values that differ from run to run.
    #[track_caller]
    fn assert_shown(&self, printed: &str) {
        let printed = without_values(printed);
        let parts: Vec<String> = self.shown.iter().map(|part| without_values(part)).collect();
        assert_ne!(parts.concat(), "", "{}", self.command);
        for part in parts {
            assert!(printed.contains(&part), "{part}\nis not part of\n{printed}");
        }
    }

    /// Runs the command, and returns what it prints.
    fn run(&self, sandbox: &Sandbox) -> String {
        let script = format!("exec 2>&1; {}", self.command);
        sandbox.spawn(bash(sandbox, &script)).wait().stdout
    }
}

/// The examples of a picture. Texts with a length are what a terminal showed; other texts are captions, and marks for
/// lines that are left out.
fn examples(picture: &str) -> Vec<Example> {
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let svg = fs::read_to_string(pictures.join(picture)).unwrap();
    let text =
        Regex::new(r#"<text( class="b")?[^>]*?( textLength=[^>]*)?>([^<]*)</text>"#).unwrap();
    let mut examples: Vec<Example> = Vec::new();
    for found in text.captures_iter(&svg) {
        let words = found[3].replace("&quot;", "\"").replace("&gt;", ">");
        if found.get(1).is_some() {
            let shown = vec![String::new()];
            examples.push(Example {
                command: words,
                shown,
            });
        } else if let Some(example) = examples.last_mut() {
            if found.get(2).is_none() {
                example.shown.push(String::new());
            } else if words != "$" {
                *example.shown.last_mut().unwrap() += &format!("{words} ");
            }
        }
    }
    examples
}

/// The words of `text`, with names for what differs from run to run.
fn without_values(text: &str) -> String {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (pattern, name) in [
        // In the pictures, ids are the addresses of the servers.
        (r"127\.0\.0\.1:\d+ \(id ([^)]+)\)", "$1"),
        (r"start the server at [^,]+", "start the server at SERVER"),
        (r"\bci \d+ ", "(PROCESS) "),
        // At the edge of a terminal the end is cut off.
        (r"\(pid \d+ on [^)]+(\)|$)", "(PROCESS)"),
        (r"\bpid \d+ on [^ ,]+", "PROCESS"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
        (r"\b\d{16}\b", "FENCE"),
        (r"\b\d+\.\d+\.\d+\b", "VERSION"),
        (
            r"\b\d+(\.\d+)?(days?|h|m|s|ms|µs)\b( \d+(h|m|s|ms)\b)*",
            "SPAN",
        ),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, name).into();
    }
    text
}

/// A script that runs until `gate` is opened.
fn deploy_script(sandbox: &Sandbox) {
    let script = "#!/bin/sh\necho deploying…\nread line < gate\necho done\n";
    fs::write(sandbox.path("deploy.sh"), script).unwrap();
    let mode = Permissions::from_mode(0o755);
    fs::set_permissions(sandbox.path("deploy.sh"), mode).unwrap();
    sandbox.gate("gate");
}

#[test]
fn shells_print_what_their_picture_shows() {
    let (sandbox, _server) = Sandbox::on_redis();
    deploy_script(&sandbox);
    let examples = examples("two-shells.svg");
    let [first, waiting, refused, second] = &examples[..] else {
        panic!("the picture has four shells");
    };
    let script = format!("exec {}", first.command);
    let holder = sandbox.spawn(bash(&sandbox, &script));
    until("the first shell deploys", || !sandbox.is_free("deploy"));
    let arguments = waiting.command.strip_prefix("leasehold ").unwrap();
    let mut terminal = OnTerminal::leasehold(&sandbox, arguments);
    let mut status = String::new();
    until("the status line is complete", || {
        terminal.screen().clone_into(&mut status);
        status.contains("waiting 3s") && status.contains("held by pid ")
    });
    waiting.assert_shown(&status);
    refused.assert_shown(&refused.run(&sandbox));
    sandbox.open_gate("gate");
    first.assert_shown(&holder.wait().stdout);
    sandbox.open_gate("gate");
    let (code, screen) = terminal.ends();
    assert_eq!(code, 0, "{screen}");
    second.assert_shown(&screen);
}

#[test]
fn queue_is_listed_as_its_picture_shows() {
    let (sandbox, _server) = Sandbox::on_redis();
    deploy_script(&sandbox);
    fs::copy(sandbox.path("deploy.sh"), sandbox.path("report.sh")).unwrap();
    let named = |args: &str, times: usize| {
        until(&format!("{times} clients in {args}"), || {
            sandbox.run(args).stdout.matches(".sh ").count() == times
        });
    };
    let _holders = ["report", "deploy"]
        .map(|lock| sandbox.start(&format!("run --ttl 10s {lock} ./{lock}.sh")));
    named("ls", 2);
    let _waiters = [(); 2].map(|()| sandbox.start("run deploy ./deploy.sh"));
    named("waiters deploy", 2);
    let holder = &sandbox.run("status --json deploy").json()["holders"][0];
    let of = |field: &str| format!(" {} ", holder[field].as_str().unwrap());
    let examples = examples("queue.svg");
    assert_eq!(examples.len(), 3);
    for example in examples {
        let printed = example.run(&sandbox);
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
        let printed = printed
            .replace(&of("host"), " ci ")
            .replace(&of("user"), " ann ");
        example.assert_shown(&printed);
    }
}

#[test]
fn doctor_reports_what_its_picture_shows() {
    let mut servers = RedisSet::start_each(5, &RedisServer::builder().durable());
    let urls = servers.urls().into_iter().zip(1..);
    let urls: Vec<String> = urls.map(|(url, n)| format!("{url}?id=redis-{n}")).collect();
    let sandbox = Sandbox::on(&urls);
    sandbox.run("init").succeeds();
    servers[1].kill();
    for (setting, value) in [("maxmemory", "64mb"), ("maxmemory-policy", "allkeys-lru")] {
        servers[3].command(&["CONFIG", "SET", setting, value]);
    }
    let examples = examples("doctor.svg");
    let [example] = &examples[..] else {
        panic!("the picture has one command");
    };
    // On a stalled machine servers seem far away, or their clocks wrong. Then the test asks again.
    let stalled = Regex::new(r"(yellow|red) +(round_trip|clock|own_clock) ").unwrap();
    let mut report = String::new();
    until("a report of a machine that did not stall", || {
        report = example.run(&sandbox);
        !stalled.is_match(&report)
    });
    example.assert_shown(&report);
    let coloured = sandbox.run("--color always doctor --all").stdout;
    for verdict in ["\x1b[32mgreen", "\x1b[33myellow", "\x1b[31mred"] {
        assert!(coloured.contains(verdict), "{coloured}");
    }
}
