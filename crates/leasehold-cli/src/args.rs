use std::ffi::OsString;
use std::io;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::message::Message;
use crate::output::Output;
use crate::verb::Verb;

/// Locks for many machines: run a command under a lease, and end it in time if the lease is lost.
#[derive(Debug, Parser)]
#[command(
    name = "leasehold",
    version,
    help_expected = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = postscript(),
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout. Its `version` is 1 as long as no field of these changes its
    /// meaning or goes; others may come.
    ///
    /// `lock`, `store`; `held`, whether anything keeps others out; `permits` with `total` and `held`;
    /// `holders`, each with `mode`, `permits`, `owner`, `host`, `pid`, `program`, `since` (when that program
    /// began), `fence`, `remaining_ms` and `broken`; `waiters`, as `leasehold waiters` shows them; `broken`, how the
    /// lock was broken last, with `fence`, `owner`, `now`, `at`, `user`, `host`, `pid`, `program` and
    /// `reason`. What is not known is null.
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

/// What changes a set, by one server at a time.
#[derive(Debug, Subcommand)]
pub(crate) enum MembersChange {
    /// Take one more server into the set.
    ///
    /// --store names the set as it is. Every server must answer. From then on clients with the old
    /// list are refused, and what they hold is lost at its deadline.
    Add {
        /// The address of the server that joins.
        url: String,
    },

    /// Let one server go from the set; it may be dead.
    ///
    /// --store names the set as it is. Every server that stays must answer. From then on clients
    /// with the old list are refused, and what they hold is lost at its deadline.
    Remove {
        /// The server that leaves: its id, as `leasehold members` shows it, or its address.
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
        /// The server that lost its data: its id, as `leasehold members` shows it, or its address.
        #[arg(value_name = "ID|URL")]
        member: String,
    },
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// Where the lock lives: redis://…, rediss://…, unix://… or file:///folder. Several Redis
    /// addresses, separated by commas, form a quorum. [default: LEASEHOLD_STORE, else
    /// leasehold.toml in the configuration folder, else files on this machine].
    #[arg(
        long,
        global = true,
        value_name = "URL,URL,…",
        conflicts_with = "local"
    )]
    pub(crate) store: Option<String>,

    /// Use the files of this machine and user, whatever is configured.
    #[arg(long, global = true)]
    pub(crate) local: bool,

    /// The longest TTL of any lock on a set of servers, the same for all its clients: so long, and
    /// a second, a server does not count after it may have forgotten locks [default: 60s].
    #[arg(long, global = true, value_name = "SPAN", value_parser = span, conflicts_with = "local")]
    pub(crate) max_ttl: Option<Duration>,

    /// By how much the clocks of the servers of a set may differ, the same for all its clients; a
    /// TTL is at least ten times as long [default: 250ms].
    #[arg(long, global = true, value_name = "SPAN", value_parser = span, conflicts_with = "local")]
    pub(crate) clock_tolerance: Option<Duration>,
}

/// Shows what clap made of arguments that name no work: help or version on stdout, or the mistake.
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
        // A reader that has gone, as `head` does, saw what it wanted.
        Err(failed) if failed.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::of_stdout(&failed);
            Output::new(false).say(&Message::Error(&failure));
            failure.code
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Whether `--json` stands among the program's own arguments, as far as that can be told of
/// arguments that make no sense.
fn asks_for_json(args: impl Iterator<Item = OsString>) -> bool {
    args.take_while(|arg| arg != "--")
        .any(|arg| arg == "--json")
}

/// What stands below the options in help and manual.
pub(crate) fn postscript() -> String {
    format!("{ENVIRONMENT}\n{}", ExitCode::table())
}

const ENVIRONMENT: &str = "\
Environment:
  LEASEHOLD_STORE            where the lock lives, as --store says it
  LEASEHOLD_MAX_TTL          as --max-ttl
  LEASEHOLD_CLOCK_TOLERANCE  as --clock-tolerance
  LEASEHOLD_REQUIRE_STORE    1: an error where no store is configured
  LEASEHOLD_HANDLE           renew, release: the handle
  LEASEHOLD_CONFIG           the configuration file, in place of leasehold.toml in
                             $XDG_CONFIG_HOME/leasehold and /etc/leasehold
";

/// A span as people write it: `30s`, `1m30s`, `500ms`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && text != "0" {
        return Err(format!("a span needs a unit: write {text}s for seconds"));
    }
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
