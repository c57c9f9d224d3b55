use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use leasehold::election::Election;

use crate::options::command_spec::CommandSpec;
use crate::options::defaults::Defaults;
use crate::options::holder_args::{CommandArgs, LabelArgs};
use crate::options::lock_options::LockOptions;
use crate::options::readiness_args::ReadinessArgs;
use crate::options::span::span;
use crate::options::store_args::StoreArgs;
use crate::output::failure::Failure;

/// The arguments of `elect`.
#[derive(Debug, Args)]
pub(crate) struct ElectArgs {
    /// Publish this text while leading, for example an address.
    ///
    /// At most 4096 bytes. Every client of the store can read it.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) value: String,

    /// Lead at most once: exit with 76 if the leadership is lost.
    ///
    /// With --observe: print the leader and exit, with 75 if there is none.
    #[arg(long)]
    pub(crate) once: bool,

    /// Print the leader and each change, without campaigning.
    ///
    /// Runs until a signal arrives.
    #[arg(
        long,
        conflicts_with_all = ["value", "ttl", "grace", "lock_delay", "label", "show_command", "ready_file", "on_acquired", "on_lost", "command"]
    )]
    pub(crate) observe: bool,

    /// Poll interval with --observe, 10ms to 1h.
    ///
    /// Each poll costs the store two reads. A change appears at most this much later.
    #[arg(long, value_name = "SPAN", value_parser = every, default_value = "1s", conflicts_with = "command")]
    pub(crate) every: Duration,

    /// The TTL of the lease.
    ///
    /// After a leader dies, no client leads for up to this time.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) ttl: Option<Duration>,

    /// The time between SIGTERM and SIGKILL on loss.
    ///
    /// Less than a third of the TTL. Default: a sixth of the TTL, at most 5s.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) grace: Option<Duration>,

    /// Delay the next leader by this time after an unclean end.
    ///
    /// See --lock-delay of `run`.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) lock_delay: Option<Duration>,

    #[command(flatten)]
    pub(crate) label: LabelArgs,

    #[command(flatten)]
    pub(crate) shown: CommandArgs,

    #[command(flatten)]
    pub(crate) readiness: ReadinessArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print JSON, one object a line.
    ///
    /// The program's own messages go to stderr; with --observe the changes go to stdout. `version` is 1;
    /// later versions may add fields, but change none.
    ///
    /// With --observe: `version`, `event`, `name`, and `leader` or `reason`. `event` is `leads`,
    /// `nobody`, or `unknown` with the `reason` why the store could not be asked. `leader` has `fence`,
    /// `value`, `since` (the start of its leadership), `owner`, `host`, `pid`, `program`, `user`, `label`
    /// and `command`. Unknown values are null.
    ///
    /// Without --observe: the messages of `run` (`notice`, `waiting`, `acquired`, `lost`, `broken`,
    /// `warning`, `error`), and with `version`: `leads` with `name`, `fence` and `value` once it is
    /// published; `campaigns` with `name` and `after_ms`, the pause before the next attempt.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the election; all candidates use the same.
    pub(crate) name: String,

    /// The command and its arguments, run while leading.
    #[arg(
        value_name = "CMD",
        required_unless_present = "observe",
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,
}

impl ElectArgs {
    /// Checks the value before anything else: once elected would be too late.
    pub(crate) fn check_value(&self) -> Result<(), Failure> {
        let (length, longest) = (self.value.len(), Election::VALUE_MAX);
        if length <= longest {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--value is {length} bytes long; the maximum is {longest}"
        )))
    }

    /// The lock of the leader.
    pub(crate) fn lock_options(&self, defaults: Defaults) -> Result<LockOptions, Failure> {
        Ok(LockOptions {
            lock_delay: self.lock_delay,
            json: self.json,
            label: self.label.label.clone(),
            command: self.shown.shown(&self.command, defaults)?,
            ..LockOptions::alone(&self.name, defaults.ttl(self.ttl)?)
        })
    }

    /// The command to run while leading.
    pub(crate) fn command_spec(&self, lock_options: &LockOptions) -> Result<CommandSpec, Failure> {
        let spec = CommandSpec::new(&self.command, lock_options, self.grace)?;
        Ok(spec.passing_store(self.shown.pass_store))
    }
}

fn every(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if (Election::POLL_INTERVAL_MIN..=Duration::from_secs(3600)).contains(&span) {
        Ok(span)
    } else {
        Err("the poll interval must be 10ms to 1h".into())
    }
}
