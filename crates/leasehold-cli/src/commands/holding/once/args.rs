use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::options::command_spec::CommandSpec;
use crate::options::defaults::Defaults;
use crate::options::holder_args::{CommandArgs, LabelArgs};
use crate::options::listing::limit;
use crate::options::lock_options::LockOptions;
use crate::options::span::span;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;

/// The arguments of `once`.
#[derive(Debug, Args)]
pub(crate) struct OnceArgs {
    /// Keep the result for this time, 1s to 10 years.
    ///
    /// Counted from the commit, by the clock of the store. Afterwards KEY is a new request. Use the same
    /// value in all calls with the same KEY.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "24h")]
    pub(crate) retain: Duration,

    /// What to do with a failed result.
    #[arg(long, value_name = "retry|keep", value_enum, default_value_t = Failed::Retry)]
    pub(crate) failed: Failed,

    /// Identify the request by TEXT, not by CMD.
    ///
    /// A call with the same KEY and another payload is an error. Only a hash of TEXT is stored.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) payload: Option<OsString>,

    /// Show what is kept for KEY, and run nothing.
    ///
    /// Exits with 0 if there is a result, and with 1 otherwise. The call itself replays the output. With --json, prints one
    /// object on stdout: `key`, `store`, `state` (`done`, `begun` or `vacant`), `fence`, `exit_code`, `stdout`, `stderr` and
    /// `kept_for_ms`.
    #[arg(long, conflicts_with_all = ["command", "forget"])]
    pub(crate) show: bool,

    /// List what is kept, and run nothing.
    ///
    /// KEY is a pattern then, in which `*` matches any text; without it, all requests are listed. With --json, prints one object
    /// on stdout: `store`, `pattern`, `more` (whether --limit left out requests), and `requests`, each as in --show.
    #[arg(long, conflicts_with_all = ["command", "show", "forget"])]
    pub(crate) list: bool,

    /// List at most N requests, in the order of keys, 1 to 100000.
    #[arg(
        long,
        value_name = "N",
        value_parser = limit,
        conflicts_with_all = ["command", "show", "forget"],
        allow_negative_numbers = true,
        default_value_t = 1000
    )]
    pub(crate) limit: usize,

    /// Forget the result of KEY, so that the next call runs CMD.
    ///
    /// Exits with 0 if something was forgotten, with 1 if there was nothing, and with 75 while an attempt runs. With --json,
    /// prints one object on stdout: `key`, `store` and `forgotten`.
    #[arg(long, conflicts_with = "command")]
    pub(crate) forget: bool,

    /// Do not wait: exit with 75 if the request is in progress.
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// Maximum time to wait [default: LEASEHOLD_WAIT, or no limit].
    ///
    /// For an attempt in progress.
    #[arg(short, long, value_name = "SPAN", value_parser = span)]
    pub(crate) wait: Option<Duration>,

    /// The TTL of the lock KEY.
    ///
    /// After an attempt dies, the next one starts at most this much later. Default: LEASEHOLD_TTL, or 30s.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) ttl: Option<Duration>,

    /// The time between SIGTERM and SIGKILL on loss.
    ///
    /// Less than a third of the TTL. Default: a sixth of the TTL, at most 5s.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) grace: Option<Duration>,

    /// Exit with CODE if the request is in progress.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = ExitCode::BUSY.get())]
    pub(crate) busy_code: u8,

    #[command(flatten)]
    pub(crate) label: LabelArgs,

    #[command(flatten)]
    pub(crate) shown: CommandArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print own messages as JSON, one object a line, on stderr.
    ///
    /// The last one is `end`, with `exit_code`. The one before it, unless it is an error, is the outcome.
    /// `version` is 1; later versions may add fields, but change none. `event` is `once`; `key`; `outcome` is `committed`, `replayed`, or
    /// `failed` (CMD failed, and its result is not kept); `fence` of the attempt with this result;
    /// `exit_code`; `stdout` and `stderr`, each with `bytes` (kept) and `cut` (whether there was more);
    /// `kept_for_ms`, null if it is not kept.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the request, and of its lock.
    #[arg(
        value_name = "KEY",
        required = false,
        required_unless_present = "list",
        default_value_if("list", "true", "*")
    )]
    pub(crate) name: String,

    /// The command and its arguments.
    #[arg(
        value_name = "CMD",
        required_unless_present_any = ["show", "forget", "list"],
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,
}

/// What to do with a failed result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Failed {
    /// Discard it: the next call runs CMD again.
    Retry,
    /// Keep and replay it, unless a signal to `once` ended CMD.
    Keep,
}

impl OnceArgs {
    /// The lock of the request.
    pub(crate) fn lock_options(&self, defaults: Defaults) -> Result<LockOptions, Failure> {
        Ok(LockOptions {
            no_wait: self.no_wait,
            wait: defaults.wait(self.wait, self.no_wait)?,
            busy_code: self.busy_code,
            json: self.json,
            label: self.label.label.clone(),
            command: self.shown.shown(&self.command, defaults)?,
            ..LockOptions::alone(&self.name, defaults.ttl(self.ttl)?)
        })
    }

    /// The command to run unless its result exists.
    pub(crate) fn command_spec(&self, lock_options: &LockOptions) -> Result<CommandSpec, Failure> {
        let spec = CommandSpec::new(&self.command, lock_options, self.grace)?;
        Ok(spec.passing_store(self.shown.pass_store))
    }

    /// The bytes that identify the request. A text and a command never have the same bytes.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let (kind, parts) = match &self.payload {
            Some(text) => ("text", std::slice::from_ref(text)),
            None => ("command", self.command.as_slice()),
        };
        let mut payload = kind.as_bytes().to_vec();
        for part in parts {
            // No argument contains a zero byte.
            payload.push(0);
            payload.extend(part.as_bytes());
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::commands::Subcommand;
    use clap::Parser as _;

    fn once(args: &[&str]) -> Result<OnceArgs, clap::Error> {
        let args = ["leasehold", "once"].iter().chain(args);
        match Cli::try_parse_from(args)?.subcommand {
            Subcommand::Once(once) => Ok(once),
            subcommand => panic!("{subcommand:?}"),
        }
    }

    #[test]
    fn different_requests_have_different_payloads() {
        let requests: [&[&str]; 6] = [
            &["x", "--", "pay", "1", "2"],
            &["x", "--", "pay", "12"],
            &["x", "--", "pay", "1 2"],
            &["x", "--", "pay", "1", "2", ""],
            &["x", "--payload", "pay", "--", "true"],
            &["x", "--", "pay"],
        ];
        let payloads = requests.map(|args| once(args).unwrap().payload());
        for (index, payload) in payloads.iter().enumerate() {
            assert!(!payloads[..index].contains(payload), "{payload:?}");
        }
        let same = once(&["-n", "--ttl", "5s", "x", "pay", "1", "2"]).unwrap();
        assert_eq!(
            same.payload(),
            payloads[0],
            "options are not part of the payload"
        );
    }
}
