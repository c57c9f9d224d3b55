use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use leasehold::Permits;

use crate::args::{StoreArgs, span};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::wish::Wish;

/// The arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Do not wait: exit with 75 if the lock is held.
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// Wait at most so long for the lock, like 30s or 1m30s [default: without limit].
    #[arg(short, long, value_name = "SPAN", value_parser = span)]
    pub(crate) wait: Option<Duration>,

    /// Share the lock with others that share it; exclude only those that want it alone.
    #[arg(short, long)]
    pub(crate) shared: bool,

    /// Hold the lock together with others, N at most: take one of its N permits (1 to 128). N is the
    /// same for all who use the lock at a time.
    #[arg(
        long,
        value_name = "N",
        value_parser = permits,
        allow_negative_numbers = true,
        conflicts_with_all = ["shared", "also"]
    )]
    pub(crate) permits: Option<Permits>,

    /// Hold this lock as well, in the same mode; may be given again.
    #[arg(long, value_name = "NAME")]
    pub(crate) also: Vec<String>,

    /// Where a run around this one holds the lock, run CMD under that one's lease, instead of
    /// refusing to wait for it; TTL, longest hold and delay are then those of that run. Exits with 76
    /// if it does not hold the lock any more.
    #[arg(long, conflicts_with = "also")]
    pub(crate) nested: bool,

    /// How long the lease lives without renewal; it is renewed all the time.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "30s")]
    pub(crate) ttl: Duration,

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
    /// When CMD has ended, its exit code is passed on at once, and the lock stays shut by a lease that
    /// nobody renews: no other run begins before SPAN is over, and at most a ninth of the rest and a second
    /// later one can (or once the lease as it stands has ended, if that is later). Where more is
    /// left than a lease of the longest TTL can bridge, or less than a second, and on files, whose locks
    /// end with their process, leasehold stays for that time; a signal ends the stay, and leaves the
    /// lease (on files, frees the lock). A CMD that could not be started leaves the lock free.
    #[arg(long, value_name = "SPAN", value_parser = span, conflicts_with = "nested")]
    pub(crate) min_hold: Option<Duration>,

    /// The exit code if the lock was not acquired in time.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = ExitCode::BUSY.get())]
    pub(crate) busy_code: u8,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print the program's own messages as JSON, one object a line, on stderr.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,

    /// The command and its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// Which locks are wanted.
    pub(crate) fn wish(&self) -> Wish {
        Wish {
            name: self.name.clone(),
            also: self.also.clone(),
            shared: self.shared,
            permits: self.permits,
            ttl: self.ttl,
            no_wait: self.no_wait,
            wait: self.wait,
            busy_code: self.busy_code,
            json: self.json,
        }
    }

    /// A shortest hold that the longest one ends is no promise.
    pub(crate) fn refuse_contradicting_holds(&self) -> Result<(), Failure> {
        match (self.min_hold, self.max_hold) {
            (Some(least), Some(most)) if least > most => Err(Failure::usage(format!(
                "min-hold {least:?} is longer than max-hold {most:?}"
            ))),
            _ => Ok(()),
        }
    }

    /// Between SIGTERM and SIGKILL.
    pub(crate) fn grace(&self) -> Result<Duration, Failure> {
        let span = self.shortest_hold();
        match self.grace {
            None => Ok((span / 6).min(Duration::from_secs(5))),
            // Renewal begins at ttl/3: a longer grace would leave it no time for a second try.
            Some(grace) if grace >= span / 3 => Err(Failure::usage(format!(
                "grace {grace:?} is too long: it must be less than a third of {span:?}, the {}",
                if span < self.ttl {
                    "longest hold"
                } else {
                    "TTL"
                },
            ))),
            Some(grace) => Ok(grace),
        }
    }

    /// By how much SIGKILL comes before the deadline: what it takes until the last process is gone.
    pub(crate) fn margin(&self) -> Duration {
        (self.shortest_hold() / 30).min(Duration::from_secs(1))
    }

    /// How long the command has from the grant to the first deadline, roughly.
    fn shortest_hold(&self) -> Duration {
        self.max_hold.map_or(self.ttl, |hold| hold.min(self.ttl))
    }
}

pub(crate) fn permits(text: &str) -> Result<Permits, String> {
    let rule = || format!("a lock has 1 to {} permits", Permits::MAX);
    let number: u32 = text.parse().map_err(|_| rule())?;
    Permits::new(number).map_err(|_| rule())
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
            assert!(run.no_wait && !run.json, "{args:?}");
            assert_eq!(run.name, "x");
            assert_eq!(run.command, ["ls", "-n", "--json"], "{args:?}");
        }
        assert_eq!(run(&["x", "--", "--", "a"]).unwrap().command, ["--", "a"]);
    }

    #[test]
    fn spans_need_a_unit() {
        let refused = run(&["-w", "30", "x", "true"]).unwrap_err().to_string();
        assert!(refused.contains("write 30s"), "{refused}");
        assert!(refused.contains("'30'"), "{refused}");
        let wait = run(&["-w", "1m30s", "x", "true"]).unwrap().wait;
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
