//! The command line as a whole: parsing, help, man pages and completions.

pub(crate) mod completions;
mod habits;
mod help;
pub(crate) mod man;

use std::ffi::OsString;

use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser};

use crate::commands::Subcommand;
use crate::output::colour::ColourChoice;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::output::verbosity::VerbosityArgs;
use crate::output::{self, Output};

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

    #[command(flatten)]
    pub(crate) verbosity: VerbosityArgs,
}

/// The program with all subcommands and the whole text of their help.
pub(crate) fn program() -> Command {
    help::with_sections(Cli::command(), &[])
}

/// Parses the arguments of this process.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    // What is right needs no text of the help, and that takes longer to put together than to parse.
    Cli::try_parse().or_else(|_| parse_with_help())
}

fn parse_with_help() -> Result<Cli, clap::Error> {
    let mut program = match asks_for_all(std::env::args_os()) {
        true => program(),
        false => help::in_short(program()),
    };
    let matches = program.try_get_matches_from_mut(std::env::args_os());
    let matches = matches.map_err(habits::explain)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// Prints what clap answers in place of a subcommand: help or version on stdout, or an error on stderr.
pub(crate) fn explain(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && asks_for_json(std::env::args_os()) {
        let text = error.render().to_string();
        let paragraph = text.split("\n\n").next().unwrap_or_default();
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let failure = Failure::usage(line.trim_start_matches("error: "));
        print_failure(&failure, true);
        return failure.code;
    }
    if error.use_stderr() {
        let _ = error.print();
        return ExitCode::USAGE;
    }
    match output::print(&error.render().to_string()) {
        Err(failure) => {
            print_failure(&failure, false);
            failure.code
        }
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn print_failure(failure: &Failure, json: bool) {
    let output = Output::new(json);
    output.print_message(&Message::Error(failure));
    output.flush();
}

/// Whether `help` is among the arguments of the program itself. If it is a name there, the long help is in no one's way.
fn asks_for_all(args: impl Iterator<Item = OsString>) -> bool {
    args.take_while(|arg| arg != "--").any(|arg| arg == "help")
}

/// Whether `--json` is among the arguments of the program itself. A guess, because the arguments could
/// not be parsed.
fn asks_for_json(args: impl Iterator<Item = OsString>) -> bool {
    args.take_while(|arg| arg != "--")
        .any(|arg| arg == "--json")
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
