use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::args::{StoreArgs, span};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::wish::Wish;
use crate::work::Work;

/// The arguments of `once`.
#[derive(Debug, Args)]
pub(crate) struct OnceArgs {
    /// For how long the result is kept, from its commit on, by the store's clock: 1s to ten years. After
    /// that KEY is a new request. Say the same for each call of one KEY.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "24h")]
    pub(crate) retain: Duration,

    /// What becomes of a result that is no success.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Failed::Retry)]
    pub(crate) failed: Failed,

    /// What the request asks for, in place of CMD and its arguments: a call with another payload under
    /// the same KEY is an error. Only a hash of it is kept.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) payload: Option<OsString>,

    /// Do not wait: exit with 75 if the request is in progress.
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// Wait at most so long for an attempt that is in progress [default: without limit].
    #[arg(short, long, value_name = "SPAN", value_parser = span)]
    pub(crate) wait: Option<Duration>,

    /// How long others wait for an attempt that died: the TTL of the lock KEY.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "30s")]
    pub(crate) ttl: Duration,

    /// The time between SIGTERM and SIGKILL when the lock is lost; less than a third of the TTL
    /// [default: a sixth of that, at most 5s].
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) grace: Option<Duration>,

    /// The exit code if the request is in progress.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = ExitCode::BUSY.get())]
    pub(crate) busy_code: u8,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print the program's own messages as JSON, one object a line, on stderr; the last one, unless it
    /// is an error, is the outcome. Its `version` is 1 as long as no field of these changes its meaning or
    /// goes; others may come.
    ///
    /// `event` is `once`; `key`; `outcome` is `committed`, `replayed`, or `failed` (CMD failed, and that is
    /// not kept); `fence` of the attempt whose result it is; `exit_code`; `stdout` and `stderr`, each with
    /// `bytes` (kept) and `cut` (whether there were more); `kept_for_ms`, null if it is not kept.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the request, and of the lock under which it runs.
    #[arg(value_name = "KEY")]
    pub(crate) name: String,

    /// The command and its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// What becomes of a result that is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Failed {
    /// Keep nothing: the next call runs CMD again.
    Retry,
    /// Keep and replay it, as any other; but not that of a CMD that was ended because `once` was told to end.
    Keep,
}

impl OnceArgs {
    /// The lock of the request.
    pub(crate) fn wish(&self) -> Wish {
        Wish {
            no_wait: self.no_wait,
            wait: self.wait,
            busy_code: self.busy_code,
            json: self.json,
            ..Wish::alone(&self.name, self.ttl)
        }
    }

    /// What is run under it, unless its result is there.
    pub(crate) fn work(&self, wish: &Wish) -> Result<Work, Failure> {
        Work::new(&self.command, wish, self.grace)
    }

    /// What is asked for: never the same for a text as for a command.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let (kind, parts) = match &self.payload {
            Some(text) => ("text", std::slice::from_ref(text)),
            None => ("command", self.command.as_slice()),
        };
        let mut payload = kind.as_bytes().to_vec();
        for part in parts {
            // No argument holds one.
            payload.push(0);
            payload.extend(part.as_bytes());
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use crate::verb::Verb;
    use clap::Parser as _;

    fn once(args: &[&str]) -> Result<OnceArgs, clap::Error> {
        let args = ["leasehold", "once"].iter().chain(args);
        match Cli::try_parse_from(args)?.verb {
            Verb::Once(once) => Ok(once),
            verb => panic!("{verb:?}"),
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
            "how it is run is no part of it"
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for args in [
            &["--failed", "forget", "x", "true"][..],
            &["--retain", "24", "x", "true"],
            &["-n", "-w", "1s", "x", "true"],
            &["x"],
        ] {
            assert!(once(args).is_err(), "{args:?}");
        }
        assert_eq!(once(&["x", "true"]).unwrap().failed, Failed::Retry);
    }
}
