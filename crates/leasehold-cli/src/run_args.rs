use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::args::span;
use crate::failure::Failure;
use crate::take_args::TakeArgs;
use crate::wish::Wish;
use crate::work::Work;

/// The arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) take: TakeArgs,

    /// Hold this lock as well, in the same mode; may be given again.
    #[arg(long, value_name = "NAME", conflicts_with = "permits")]
    pub(crate) also: Vec<String>,

    /// Where a run around this one holds the lock, run CMD under that one's lease, instead of
    /// refusing to wait for it; TTL, longest hold and delay are then those of that run. Exits with 76
    /// if it does not hold the lock any more.
    #[arg(long, conflicts_with = "also")]
    pub(crate) nested: bool,

    /// The time between SIGTERM and SIGKILL when the lock is lost; less than a third of the TTL, or
    /// of the longest hold [default: a sixth of that, at most 5s].
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) grace: Option<Duration>,

    /// Hold the lock at most so long, then count it as lost.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) max_hold: Option<Duration>,

    /// Keep the lock shut for so long after an unclean end: it was lost, or leasehold was killed. For
    /// what cannot compare fencing tokens: late writes then arrive before the next holder begins. With
    /// the TTL at most the longest TTL of the store; not for files, whose locks end with their holder.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) lock_delay: Option<Duration>,

    /// Keep the lock for at least so long from when it was acquired, though CMD has ended before: for
    /// scheduled jobs that are shorter than the clocks of their machines differ.
    ///
    /// When CMD has ended, leasehold passes on its exit code at once, and leaves the lock to a lease that
    /// nobody renews. No other run begins before SPAN is over. The lock is free at most a ninth of the rest
    /// and a second later. Leasehold stays for the rest, and then frees the lock, if that is shorter than a
    /// second or than the TTL, and on files, whose locks end with their process. It also stays while more is
    /// left than a lease of the longest TTL can bridge. A signal ends the stay, and leaves the lease (on
    /// files, it frees the lock). A CMD that could not be started leaves the lock free.
    #[arg(long, value_name = "SPAN", value_parser = span, conflicts_with = "nested")]
    pub(crate) min_hold: Option<Duration>,

    /// Print the program's own messages as JSON, one object a line, on stderr.
    #[arg(long)]
    pub(crate) json: bool,

    /// The command and its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// Which locks are wanted.
    pub(crate) fn wish(&self) -> Wish {
        Wish {
            also: self.also.clone(),
            max_hold: self.max_hold,
            lock_delay: self.lock_delay,
            ..self.take.wish(self.json)
        }
    }

    /// What is run under them.
    pub(crate) fn work(&self, wish: &Wish) -> Result<Work, Failure> {
        let work = Work::new(&self.command, wish, self.grace)?;
        match self.min_hold {
            Some(span) => work.keeping(span, wish),
            None => Ok(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use crate::verb::Verb;
    use clap::Parser as _;
    use clap::error::ErrorKind;

    fn run(args: &[&str]) -> Result<RunArgs, clap::Error> {
        let args = ["leasehold", "run"].iter().chain(args);
        match Cli::try_parse_from(args)?.verb {
            Verb::Run(run) => Ok(run),
            verb => panic!("{verb:?}"),
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
            assert!(run.take.no_wait && !run.json, "{args:?}");
            assert_eq!(run.take.name, "x");
            assert_eq!(run.command, ["ls", "-n", "--json"], "{args:?}");
        }
        assert_eq!(run(&["x", "--", "--", "a"]).unwrap().command, ["--", "a"]);
    }

    #[test]
    fn spans_need_a_unit() {
        let refused = run(&["-w", "30", "x", "true"]).unwrap_err().to_string();
        assert!(refused.contains("write 30s"), "{refused}");
        assert!(refused.contains("'30'"), "{refused}");
        let wait = run(&["-w", "1m30s", "x", "true"]).unwrap().take.wait;
        assert_eq!(wait, Some(Duration::from_secs(90)));
        assert!(run(&["--ttl", "soon", "x", "true"]).is_err());
    }

    #[test]
    fn waiting_and_not_waiting_exclude_each_other() {
        let kind = run(&["-n", "-w", "1s", "x", "true"]).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::ArgumentConflict);
        let kind = run(&["--local", "--store", "file:/x", "x", "true"])
            .unwrap_err()
            .kind();
        assert_eq!(kind, ErrorKind::ArgumentConflict);
    }

    #[test]
    fn a_command_is_required() {
        let kind = run(&["x"]).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::MissingRequiredArgument);
    }
}
