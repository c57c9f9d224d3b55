//! The parts of help and man pages that clap does not know: examples, environment and exit codes.
//!
//! `--help` shows what a command does, a line for each option, and the exit codes. The rest made it 239 lines for `run`, 150 of them
//! behind the first screen. It is in `leasehold help COMMAND` and in the pages of the manual, which containers lack.

use std::fmt::Write as _;

use clap::Command;

/// The lines of a section: a term and its description, or two columns of an example.
type Rows = Vec<(&'static str, String)>;

/// A section that comes after the options.
pub(crate) struct Section {
    /// The title as in a man page, where it is in capitals.
    pub(crate) title: &'static str,
    /// Verbatim text, or `rows`.
    pub(crate) code: Option<&'static str>,
    pub(crate) rows: Rows,
}

/// Adds the sections to the help of `command`, which `words` name, and of its subcommands. Without the long help, they are
/// the examples and the exit codes, and a pointer to the long help.
pub(crate) fn with_sections(command: Command, words: &[&str]) -> Command {
    let sections = sections(words);
    let in_short = sections.iter().filter(|it| it.title != ENVIRONMENT_TITLE);
    let more = match words {
        [] => "`leasehold help` lists the environment, and `leasehold help COMMAND` explains each option.".to_owned(),
        words => format!(
            "`leasehold help {}` explains each option, and lists the environment.",
            words.join(" ")
        ),
    };
    let command = command
        .after_help(format!("{}\n\n{more}", text(in_short)))
        .after_long_help(text(sections.iter()));
    command.mut_subcommands(|inner| {
        let name = inner.get_name().to_owned();
        with_sections(inner, &[words, &[&name]].concat())
    })
}

/// Shortens the help of `command` and its subcommands, so that `--help` is one page: what the command does, and one
/// line for each option.
pub(crate) fn in_short(command: Command) -> Command {
    let about = command.get_long_about().or(command.get_about()).cloned();
    let command = match about {
        Some(about) => command.before_help(about),
        None => command,
    };
    command
        .help_template("{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}")
        .long_about(None::<&str>)
        .after_long_help(None::<&str>)
        .mut_args(|arg| {
            let takes_values = arg.get_action().takes_values();
            arg.long_help(None::<&str>)
                .hide_possible_values(takes_values)
        })
        .mut_subcommands(in_short)
}

fn text<'a>(sections: impl Iterator<Item = &'a Section>) -> String {
    let mut text = String::new();
    for section in sections {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}:", section.title);
        for line in section.code.unwrap_or_default().lines() {
            let _ = writeln!(text, "{}", format!("  {line}").trim_end());
        }
        let width = section.rows.iter().map(|(term, _)| term.len()).max();
        for (term, what) in &section.rows {
            let line = format!("  {term:width$}  {what}", width = width.unwrap_or(0));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// The sections for the subcommand `words`.
pub(crate) fn sections(words: &[&str]) -> Vec<Section> {
    let subcommand = words.join(" ");
    let examples = EXAMPLES.iter().find(|(of, _)| *of == subcommand);
    let examples = examples.map(|(_, code)| Section {
        title: "Examples",
        code: Some(code),
        rows: Vec::new(),
    });
    let listed = |title, table: &[Row]| Section {
        title,
        code: None,
        rows: rows(&subcommand, table),
    };
    examples
        .into_iter()
        .chain([
            listed(ENVIRONMENT_TITLE, ENVIRONMENT),
            listed("Environment of CMD", COMMAND_ENVIRONMENT),
            listed("Exit status", EXIT_CODES),
        ])
        .filter(|section| section.code.is_some() || !section.rows.is_empty())
        .collect()
}

fn rows(subcommand: &str, table: &[Row]) -> Rows {
    table
        .iter()
        .filter(|row| {
            subcommand.is_empty()
                || row.subcommands.is_empty()
                || row.subcommands.contains(&subcommand)
        })
        .map(|row| (row.term, row.description(subcommand.is_empty())))
        .collect()
}

/// A variable or an exit code, for these subcommands, or for all if there are none.
struct Row {
    term: &'static str,
    subcommands: &'static [&'static str],
    what: &'static str,
}

impl Row {
    /// Names the subcommands where the page is about all of them.
    fn description(&self, names_subcommands: bool) -> String {
        // Too many to name means nearly all.
        let is_special = (1..=4).contains(&self.subcommands.len());
        if names_subcommands && is_special {
            format!("{}: {}", self.subcommands.join(", "), self.what)
        } else {
            self.what.into()
        }
    }
}

const fn row(term: &'static str, subcommands: &'static [&'static str], what: &'static str) -> Row {
    Row {
        term,
        subcommands,
        what,
    }
}

/// Subcommands that run a command under a lock.
const RUNS: &[&str] = &["run", "elect", "once"];

/// Subcommands that use a store.
const STORE: &[&str] = &[
    "run",
    "elect",
    "once",
    "hold",
    "acquire",
    "renew",
    "release",
    "status",
    "ls",
    "waiters",
    "top",
    "wait",
    "exporter",
    "break",
    "gc",
    "init",
    "members",
    "members add",
    "members remove",
    "members replace",
    "members readmit",
    "doctor",
];

const ENVIRONMENT_TITLE: &str = "Environment";

const ENVIRONMENT: &[Row] = &[
    row("LEASEHOLD_STORE", STORE, "the store, as for --store"),
    row(
        "LEASEHOLD_PASSWORD",
        STORE,
        "the password for a URL that has none",
    ),
    row(
        "LEASEHOLD_REQUIRE_STORE",
        STORE,
        "1: fail if no store is configured",
    ),
    row(
        "LEASEHOLD_CONFIG",
        STORE,
        "configuration file. Default: leasehold.toml in",
    ),
    row("", STORE, "$XDG_CONFIG_HOME/leasehold or /etc/leasehold"),
    row(
        "LEASEHOLD_SHOW_COMMAND",
        RUNS,
        "what others see of CMD: none, name or line",
    ),
    row(
        "LEASEHOLD_TTL",
        &["run", "elect", "once", "hold", "acquire"],
        "the TTL, unless --ttl gives one",
    ),
    row(
        "LEASEHOLD_WAIT",
        &["run", "once", "hold", "acquire", "wait"],
        "the maximum time to wait, unless -w or -n is given",
    ),
    row("LEASEHOLD_HANDLE", &["renew", "release"], "the handle"),
    row("LEASEHOLD_FENCE", &["fence check"], "the fence (TOKEN)"),
    row("NO_COLOR", &[], "not empty: no colours"),
];

const COMMAND_ENVIRONMENT: &[Row] = &[
    row("LEASEHOLD_NAME", RUNS, "the name of the lock"),
    row("LEASEHOLD_FENCE", RUNS, "its fencing token"),
    row(
        "LEASEHOLD_FENCES",
        RUNS,
        "JSON: the names of all locks and their fences",
    ),
    row("LEASEHOLD_MEMBERS", RUNS, "the ids of the servers"),
];

const EXIT_CODES: &[Row] = &[
    row("0-255", RUNS, "the exit code of CMD"),
    row("128+n", RUNS, "signal n ended CMD or the wait"),
    row("0", &[], "success"),
    row("1", &["status"], "--check: the lock is free"),
    row("1", &["once"], "--show, --forget: there is no result"),
    row("3", &["status"], "--check: another process holds it"),
    row("128+n", &["hold", "top"], "signal n ended it"),
    row("64", &[], "usage error, or a value that breaks a rule"),
    row(
        "65",
        STORE,
        "damaged lock data, or a key of another kind with this name",
    ),
    row(
        "69",
        STORE,
        "no quorum, or the store does not answer or is not ready",
    ),
    row(
        "69",
        &["members", "doctor"],
        "no majority of servers has a vote",
    ),
    row("74", &[], "a file or disk failed"),
    row(
        "75",
        &["run", "once", "hold", "acquire"],
        "not acquired in time (-E changes it)",
    ),
    row("75", &["wait"], "not free in time (-E changes it)"),
    row("75", &["elect"], "--observe --once: there is no leader"),
    row("76", RUNS, "the lock was lost, and CMD was ended"),
    row("76", &["hold", "renew", "release"], "the lock was lost"),
    row("76", &["fence check"], "a later holder was here"),
    row(
        "76",
        &["break"],
        "no such lease: the lock is free, or has another",
    ),
    row(
        "77",
        STORE,
        "the store refused access (password, ACL, TLS, database)",
    ),
    row("78", &["doctor"], "a check is red"),
    row(
        "78",
        STORE,
        "not initialized, another quorum, or a server that may evict locks",
    ),
    row("125", &[], "another failure of leasehold itself"),
    row("126", RUNS, "CMD could not be executed"),
    row("127", RUNS, "CMD was not found"),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "",
        "leasehold run deploy -- ./deploy.sh
leasehold run --store redis://a,redis://b,redis://c deploy -- ./deploy.sh
leasehold status deploy",
    ),
    (
        "run",
        "leasehold run deploy -- ./deploy.sh
leasehold run --wait 30s --store redis://a,redis://b,redis://c deploy -- ./deploy.sh",
    ),
    (
        "elect",
        "leasehold elect --value \"$(hostname):8080\" scheduler -- ./scheduler
leasehold elect --observe scheduler",
    ),
    (
        "once",
        "leasehold once --retain 7d invoice-2024-05 -- ./send-invoice 2024-05
leasehold once --list 'invoice-*'",
    ),
    (
        "hold",
        r#"coproc HOLD { exec leasehold hold deploy; }
pid=$HOLD_PID
read -r held <&"${HOLD[0]}" || { wait "$pid"; exit; }   # not held
./deploy.sh
exec {HOLD[1]}>&-   # releases the lock
wait "$pid"         # 76 if it was lost meanwhile"#,
    ),
    (
        "acquire",
        r#"handle=$(leasehold acquire --ttl 60s deploy) || exit
./first-step.sh
handle=$(leasehold renew <<< "$handle") || exit
./second-step.sh
leasehold release <<< "$handle""#,
    ),
    (
        "renew",
        r#"handle=$(leasehold renew <<< "$handle") || exit"#,
    ),
    ("release", r#"leasehold release <<< "$handle""#),
    ("status", "leasehold status deploy"),
    ("ls", "leasehold ls 'deploy-*'"),
    ("waiters", "leasehold waiters deploy"),
    ("top", "leasehold top 'deploy-*'"),
    (
        "wait",
        "leasehold wait -w 10m deploy && echo 'no deployment runs'",
    ),
    (
        "exporter",
        "leasehold exporter --listen 127.0.0.1:9746
leasehold exporter --textfile /var/lib/node_exporter/leasehold.prom",
    ),
    (
        "break",
        "leasehold break --fence 42 --reason 'host is gone' deploy",
    ),
    ("gc", "leasehold gc --unused-for 90d"),
    (
        "init",
        "leasehold init --store redis://a,redis://b,redis://c",
    ),
    (
        "members",
        "leasehold members --store redis://a,redis://b,redis://c",
    ),
    (
        "members add",
        "leasehold members --store redis://a,redis://b,redis://c add redis://d",
    ),
    (
        "members remove",
        "leasehold members --store redis://a,redis://b,redis://c,redis://d remove redis://d",
    ),
    (
        "members replace",
        "leasehold members --store redis://a,redis://b,redis://c replace redis://c redis://d",
    ),
    (
        "members readmit",
        "leasehold members --store redis://a,redis://b,redis://c readmit redis://c",
    ),
    (
        "doctor",
        "leasehold doctor --store redis://a,redis://b,redis://c",
    ),
    (
        "fence check",
        r#"leasehold fence check --high-water report.csv.fence && mv "$new" report.csv"#,
    ),
    (
        "completions",
        "leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold",
    ),
    (
        "man",
        "leasehold man run | man -l -\nleasehold man --write ~/.local/share/man/man1",
    ),
];
