use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::options::command_spec::CommandSpec;
use crate::options::defaults::Defaults;
use crate::options::holder_args::CommandArgs;
use crate::options::lock_args::LockArgs;
use crate::options::lock_options::LockOptions;
use crate::options::readiness_args::ReadinessArgs;
use crate::options::span::span;
use crate::output::failure::Failure;

/// The arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// Also hold this lock, in the same mode; may be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "permits")]
    pub(crate) also: Vec<String>,

    /// Use the lease of an outer `run` that holds the lock.
    ///
    /// Without --nested, a run whose outer run holds the same lock is refused, because it would wait
    /// forever. TTL, --max-hold and --lock-delay are those of the outer run. Exits with 76 if the outer
    /// run no longer holds the lock.
    #[arg(long, conflicts_with = "also")]
    pub(crate) nested: bool,

    /// The time between SIGTERM and SIGKILL on loss.
    ///
    /// Less than a third of the TTL, or of --max-hold. Default: a sixth of the TTL, at most 5s.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) grace: Option<Duration>,

    /// Maximum hold time; the lock counts as lost afterwards.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) max_hold: Option<Duration>,

    /// Delay the next holder by this time after an unclean end.
    ///
    /// An unclean end is a lost lock or a killed leasehold. Late writes then arrive before the next
    /// holder begins, also at targets that cannot compare fences. TTL and delay together may not exceed
    /// the longest TTL of the store. Not for files: their locks end with their process.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) lock_delay: Option<Duration>,

    /// Minimum hold time, even if CMD ends earlier.
    ///
    /// For scheduled jobs that take less time than the difference between the clocks of their machines.
    ///
    /// When CMD ends early, leasehold stays until SPAN is over, releases the lock, and exits with the code of CMD. A
    /// signal ends the stay: the lock then stays closed until its TTL is over; a lock file is released. A CMD that
    /// could not be started leaves the lock free.
    #[arg(long, value_name = "SPAN", value_parser = span, conflicts_with = "nested")]
    pub(crate) min_hold: Option<Duration>,

    /// Run CMD under the lock of the handle in FILE, without NAME.
    ///
    /// For a step between `acquire` and `release`: the lease is renewed while CMD runs, and the lock stays held afterwards,
    /// with a new handle in FILE. Exits with 76 if the lock was lost. The options of the lock are those of `acquire`.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "no_wait", "wait", "shared", "permits", "ttl", "label", "also", "nested", "max_hold", "lock_delay", "min_hold"
        ]
    )]
    pub(crate) handle_file: Option<PathBuf>,

    /// Let the store keep how CMD ended, for `status`.
    ///
    /// `status` then shows who held the lock last, until when, and the exit code, for 30 days. A run that was killed is not
    /// recorded. `record_end = true` in leasehold.toml is the same for all runs that use the store in that file, except on
    /// shared locks and permits. It costs two more requests at the end.
    #[arg(long, conflicts_with_all = ["shared", "permits", "nested", "handle_file"])]
    pub(crate) record_end: bool,

    #[command(flatten)]
    pub(crate) shown: CommandArgs,

    #[command(flatten)]
    pub(crate) readiness: ReadinessArgs,

    /// Print own messages as JSON, one object a line, on stderr.
    ///
    /// Each has `version` (1), `time` and `event`. The last one is `end`, with `exit_code`.
    #[arg(long)]
    pub(crate) json: bool,

    /// Run LINE with `sh -c`, in place of CMD.
    #[arg(short = 'c', value_name = "LINE", conflicts_with = "command")]
    pub(crate) line: Option<OsString>,

    /// The name of the lock.
    #[arg(value_name = "NAME", required_unless_present = "handle_file")]
    pub(crate) name: Option<OsString>,

    /// The command and its arguments.
    #[arg(
        value_name = "CMD",
        required_unless_present_any = ["line", "handle_file"],
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// The command with its arguments, also of a line for the shell.
    fn words(&self) -> Vec<OsString> {
        // With --handle-file there is no NAME, and the first word belongs to CMD.
        let first = self.name.iter().filter(|_| self.handle_file.is_some());
        match &self.line {
            Some(line) => vec!["sh".into(), "-c".into(), line.clone()],
            None => first.chain(&self.command).cloned().collect(),
        }
    }

    /// The locks to hold.
    pub(crate) fn lock_options(&self, defaults: Defaults) -> Result<LockOptions, Failure> {
        let name = self.name.as_deref().unwrap_or_default();
        let Some(name) = name.to_str() else {
            let text = format!("the name {name:?} is not valid UTF-8; a lock has a name in UTF-8");
            return Err(Failure::usage(text));
        };
        Ok(LockOptions {
            also: self.also.clone(),
            max_hold: self.max_hold,
            lock_delay: self.lock_delay,
            command: self.shown.shown(&self.words(), defaults)?,
            ..self.lock.lock_options(name, self.json, defaults)?
        })
    }

    /// The command to run while holding them.
    pub(crate) fn command_spec(
        &self,
        lock_options: &LockOptions,
        defaults: Defaults,
    ) -> Result<CommandSpec, Failure> {
        let words = self.words();
        let has_name = self.name.is_some() && self.line.is_some();
        if self.handle_file.is_some() && (words.is_empty() || has_name) {
            return Err(Failure::usage(
                "with --handle-file, `run` takes a command and no NAME, as in: run --handle-file FILE -- CMD",
            ));
        }
        let mut spec = CommandSpec::new(&words, lock_options, self.grace)?
            .passing_store(self.shown.pass_store);
        spec.records_end = self.record_end || defaults.record_end;
        match self.min_hold {
            Some(span) => spec.keeping(span, lock_options),
            None => Ok(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::commands::Subcommand;
    use clap::Parser as _;

    fn run(args: &[&str]) -> Result<RunArgs, clap::Error> {
        let args = ["leasehold", "run"].iter().chain(args);
        match Cli::try_parse_from(args)?.subcommand {
            Subcommand::Run(run) => Ok(run),
            subcommand => panic!("{subcommand:?}"),
        }
    }

    #[test]
    fn the_commands_own_dashes_belong_to_it() {
        for args in [
            &["-n", "x", "--", "ls", "-n", "--json"][..],
            &["-n", "x", "ls", "-n", "--json"],
            &["x", "-n", "ls", "-n", "--json"],
            &["x", "-n", "--", "ls", "-n", "--json"],
        ] {
            let run = run(args).unwrap();
            assert!(run.lock.no_wait && !run.json, "{args:?}");
            assert_eq!(run.name.unwrap(), "x");
            assert_eq!(run.command, ["ls", "-n", "--json"], "{args:?}");
        }
        assert_eq!(run(&["x", "--", "--", "a"]).unwrap().command, ["--", "a"]);
    }
}
