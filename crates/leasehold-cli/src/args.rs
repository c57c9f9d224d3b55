use std::ffi::OsString;
use std::io;
use std::time::Duration;

use clap::{Args, Command, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::help;
use crate::message::Message;
use crate::output::Output;
use crate::subcommand::Subcommand;

/// Run a command under a lock that spans machines.
///
/// Locks are leases: the command is ended in time if its lease is lost.
#[derive(Debug, Parser)]
#[command(
    name = "leasehold",
    version,
    help_expected = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,

    /// Use colours: auto, always or never.
    ///
    /// `auto` uses them on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t = ColourChoice::Auto,
        hide_possible_values = true
    )]
    pub(crate) color: ColourChoice,
}

/// When the program uses colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `lock`, `store`; `held`, whether the lock
    /// is held; `permits` with `total` and `held`; `holders`, each with `mode`, `permits`, `owner`, `host`,
    /// `pid`, `program`, `since` (when it took the lock), `fence`, `remaining_ms`, `broken`, `foreign` (whether
    /// another library holds the lock) and `form` (what the value of a foreign lock looks like); `waiters`, as in
    /// `leasehold waiters`; `broken`, the last break of the lock, with `fence`, `owner`, `now`, `at`, `user`,
    /// `host`, `pid`, `program` and `reason`. Unknown values are null.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MembersArgs {
    #[command(subcommand)]
    pub(crate) change: Option<MembersChange>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Changes the members of a quorum, one server at a time.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MembersChange {
    /// Add one server to the quorum.
    ///
    /// --store names the current servers. All of them, and the new one, must answer. Clients with the old
    /// list are refused afterwards: they lose the locks they hold, and `run` ends their commands. Change the
    /// configuration of all clients at the same time, best while no lock is held (`leasehold ls`).
    Add {
        /// The URL of the new server.
        url: String,
    },

    /// Remove one server from the quorum, even if it is dead.
    ///
    /// --store names the current servers. All that remain must answer. Clients with the old list are refused
    /// afterwards: they lose the locks they hold, and `run` ends their commands. Change the configuration of all
    /// clients at the same time, best while no lock is held (`leasehold ls`).
    Remove {
        /// The server: its id as in `leasehold members`, or its URL.
        #[arg(value_name = "ID|URL")]
        member: String,
    },

    /// Give a server that lost its data a new record.
    ///
    /// Clients do this by themselves once a majority of the servers has the record of this quorum,
    /// or once all servers answer. Use it if the other servers cannot come back. The server has no
    /// vote for max_ttl and a second afterwards.
    ///
    /// Before you use it, make sure that no server that does not answer belongs to another quorum
    /// by now. Otherwise two clients can hold the same lock.
    Readmit {
        /// The server: its id as in `leasehold members`, or its URL.
        #[arg(value_name = "ID|URL")]
        member: String,
    },
}

/// The title above these options in help.
const STORE_OPTIONS: &str = "Store options";

/// Which store to use. Part of most subcommands.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// Use this store: one URL, or several for a quorum.
    ///
    /// A URL is redis://…, rediss://… (TLS), unix://… (a socket) or file:///folder. Several Redis URLs,
    /// separated by commas, form a quorum. Default: LEASEHOLD_STORE, then leasehold.toml in the
    /// configuration folder, then files of this machine and user.
    #[arg(
        long,
        global = true,
        help_heading = STORE_OPTIONS,
        value_name = "URL,URL,…",
        conflicts_with = "local"
    )]
    pub(crate) store: Option<String>,

    /// Use the files of this machine and user.
    ///
    /// Ignores every configured store.
    #[arg(long, global = true, help_heading = STORE_OPTIONS)]
    pub(crate) local: bool,

    /// Set the longest TTL in the quorum [default: 60s].
    ///
    /// All clients of a quorum must use the same value. A server that may have forgotten locks has no
    /// vote for this time and a second.
    #[arg(long, global = true, help_heading = STORE_OPTIONS, value_name = "SPAN", value_parser = span, conflicts_with = "local")]
    pub(crate) max_ttl: Option<Duration>,

    /// Set the tolerated clock difference [default: 250ms].
    ///
    /// The clocks of the servers of a quorum may differ by at most this much. All clients must use the
    /// same value. A TTL must be at least ten times as long.
    #[arg(long, global = true, help_heading = STORE_OPTIONS, value_name = "SPAN", value_parser = span, conflicts_with = "local")]
    pub(crate) clock_tolerance: Option<Duration>,
}

/// The program with all subcommands and the whole text of their help.
pub(crate) fn program() -> Command {
    help::with_sections(Cli::command(), &[])
}

/// Parses the arguments of this process.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let mut program = program();
    let matches = program.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// Prints what clap answers in place of a subcommand: help or version on stdout, or an error on stderr.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && asks_for_json(std::env::args_os()) {
        let text = error.render().to_string();
        let paragraph = text.split("\n\n").next().unwrap_or_default();
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let failure = Failure::usage(line.trim_start_matches("error: "));
        Output::new(true).say(&Message::Error(&failure));
        return failure.code;
    }
    match error.print() {
        _ if error.use_stderr() => ExitCode::USAGE,
        // A reader that has gone, such as `head`, has seen what it wanted.
        Err(failed) if failed.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::of_stdout(&failed);
            Output::new(false).say(&Message::Error(&failure));
            failure.code
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Whether `--json` is among the arguments of the program itself. A guess, because the arguments could
/// not be parsed.
fn asks_for_json(args: impl Iterator<Item = OsString>) -> bool {
    args.take_while(|arg| arg != "--")
        .any(|arg| arg == "--json")
}

/// Parses a duration as people write it: `30s`, `1m30s`, `500ms`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && text != "0" {
        return Err(format!(
            "a duration needs a unit; write {text}s for seconds"
        ));
    }
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        program().debug_assert();
    }

    fn assert_short(command: &Command) {
        let name = command.get_name();
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                help.chars().count() <= 60,
                "{name} {}: {help}",
                arg.get_id()
            );
        }
        for inner in command.get_subcommands() {
            assert_short(inner);
        }
    }

    #[test]
    fn first_lines_have_at_most_sixty_characters() {
        assert_short(&program());
    }
}
