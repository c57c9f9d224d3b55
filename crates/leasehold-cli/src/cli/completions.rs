use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Duration;

use clap_complete::Shell;
use leasehold::look::Pattern;
use leasehold::store::background::thread;
use nix::unistd::dup2_stderr;

use crate::cli;
use crate::config;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

/// The hidden subcommand that prints the names of locks for a completion script.
const NAMES: &str = "__names";

/// Completes the names of locks in bash, after what clap completes.
const BASH: &str = r#"
_leasehold_and_names() {
    _leasehold "$@"
    local cur="${COMP_WORDS[COMP_CWORD]}"
    case "${COMP_WORDS[1]}" in
        acquire|break|elect|hold|ls|run|status|top|wait|waiters) ;;
        *) return 0 ;;
    esac
    case "$cur" in -*) return 0 ;; esac
    [ "$COMP_CWORD" -ge 2 ] || return 0
    COMPREPLY+=($(compgen -W "$(leasehold __names "$COMP_LINE" 2>/dev/null)" -- "$cur"))
}
complete -F _leasehold_and_names -o bashdefault -o default leasehold
"#;

/// The same in fish.
const FISH: &str = r#"
complete -c leasehold -n "__fish_seen_subcommand_from acquire break elect hold ls run status top wait waiters" -f -a "(leasehold __names (commandline -p) 2>/dev/null)"
"#;

/// The same in zsh, where each argument names what completes it.
const ZSH: (&str, &str, &str) = (
    "The name of the lock:_default",
    "The name of the lock:_leasehold_names",
    r#"
_leasehold_names() {
    local -a names
    names=(${(f)"$(leasehold __names "$words" 2>/dev/null)"})
    compadd -a names
}
"#,
);

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::program(), "leasehold", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script += BASH,
        Shell::Fish => script += FISH,
        Shell::Zsh => {
            let (default, names, function) = ZSH;
            script = script.replace(default, names);
            // Before the end, which runs or registers the completion.
            let end = script.rfind("\nif [ ").unwrap_or(script.len());
            script.insert_str(end, function);
        }
        _ => {}
    }
    output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the names of the held locks, if a completion script started the program for that. A store that does not answer
/// soon has no names, and nothing is said about it.
pub(crate) fn names_for_a_script() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != NAMES {
        return None;
    }
    let line = args.next().unwrap_or_default();
    let line = line.to_string_lossy().into_owned();
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = dup2_stderr(&null);
    }
    let (sender, names) = mpsc::channel();
    // The process ends without waiting for this thread.
    let started = thread("leasehold-names", move || {
        let _ = sender.send(names_of(&line).unwrap_or_default());
    });
    if started.is_ok()
        && let Ok(names) = names.recv_timeout(ANSWER_MAX)
    {
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        let _ = output::print(&lines);
    }
    Some(ExitCode::SUCCESS)
}

/// The names that need no quotes, of the store that the command line chooses.
fn names_of(line: &str) -> Result<BTreeSet<String>, Failure> {
    let output = Output::new(false);
    let choice = config::choose_store(&store_in(line), &output)?;
    let store = OpenStore::open(&choice)?;
    let client = store.client();
    let listing = runtime()?.block_on(client.list_locks(&Pattern::all(), NAMES_MAX))?;
    let names = listing.locks.iter().map(|lock| lock.key.to_string());
    Ok(names.filter(|name| is_plain(name)).collect())
}

/// The options in `line` that choose a store.
fn store_in(line: &str) -> StoreArgs {
    let mut args = StoreArgs::default();
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some(("--store", url)) => args.store = Some(url.to_owned()),
            _ if word == "--store" => args.store = words.next().map(str::to_owned),
            _ if word == "--local" => args.local = true,
            _ if word == "--" => break,
            _ => {}
        }
    }
    args
}

fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c);
    name.chars().all(is_plain)
}

/// How long a key press may take.
const ANSWER_MAX: Duration = Duration::from_secs(1);
const NAMES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_is_that_of_the_command_line() {
        let store = |line| store_in(line).store;
        assert_eq!(
            store("leasehold run --store redis://a de").as_deref(),
            Some("redis://a")
        );
        assert_eq!(
            store("leasehold run --store=redis://a").as_deref(),
            Some("redis://a")
        );
        assert_eq!(store("leasehold run x -- y --store redis://a"), None);
        assert!(store_in("leasehold ls --local").local);
    }

    #[test]
    fn names_with_special_characters_are_left_out() {
        assert!(is_plain("jobs/2026-11:a") && !is_plain("a b") && !is_plain("$(x)"));
    }
}
