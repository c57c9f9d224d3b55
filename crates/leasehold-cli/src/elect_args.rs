use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use leasehold::Election;

use crate::args::{StoreArgs, span};
use crate::failure::Failure;
use crate::wish::Wish;
use crate::work::Work;

/// The arguments of `elect`.
#[derive(Debug, Args)]
pub(crate) struct ElectArgs {
    /// What the leader publishes, for those who observe: where it can be reached, say. At most 4096 bytes;
    /// everybody can read it who can ask the store.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) value: String,

    /// Lead once at most: exit with 76 if the leadership is lost. With --observe: print who leads now, and exit,
    /// with 75 if nobody does.
    #[arg(long)]
    pub(crate) once: bool,

    /// Do not campaign: print who leads, a line now and one for each change, until a signal.
    #[arg(
        long,
        conflicts_with_all = ["value", "ttl", "grace", "lock_delay", "command"]
    )]
    pub(crate) observe: bool,

    /// The pause between two looks of --observe, 10ms to 1h: a change is seen so much later, and each look
    /// costs the store two reads.
    #[arg(long, value_name = "SPAN", value_parser = every, default_value = "1s", conflicts_with = "command")]
    pub(crate) every: Duration,

    /// How long the lease lives without renewal, and so how long nobody leads after a leader died.
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "30s")]
    pub(crate) ttl: Duration,

    /// The time between SIGTERM and SIGKILL when the leadership is lost; less than a third of the TTL
    /// [default: a sixth of that, at most 5s].
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) grace: Option<Duration>,

    /// Let nobody lead for so long after an unclean end, as --lock-delay of run.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) lock_delay: Option<Duration>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print JSON, one object a line: the program's own messages on stderr; with --observe the changes, on
    /// stdout. `version` is 1 as long as no field of these changes its meaning or goes; others may come.
    ///
    /// With --observe: `version`, `event`, `name`, and `leader` or `reason`. `event` is `leads`, `nobody`, or
    /// `unknown` with the `reason` why the store could not be asked. `leader` has `fence`, `value`, `since` (when
    /// it became the leader), `owner`, `host`, `pid` and `program`; what is not known is null.
    ///
    /// Without: the messages of `run` (`notice`, `waiting`, `acquired`, `lost`, `broken`, `warning`, `error`),
    /// and with `version`: `leads` with `name`, `fence` and `value` once it is announced; `campaigns` with `name`
    /// and `after_ms`, the pause before it is tried again.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name under which all who want to lead campaign.
    pub(crate) name: String,

    /// The command and its arguments, run while this one leads.
    #[arg(
        value_name = "CMD",
        required_unless_present = "observe",
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,
}

impl ElectArgs {
    /// Before anything is asked: once this one is elected would be late.
    pub(crate) fn check_value(&self) -> Result<(), Failure> {
        let (length, longest) = (self.value.len(), Election::VALUE_MAX);
        if length <= longest {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--value: {length} bytes are too many, at most {longest} are published"
        )))
    }

    /// The lock of whoever leads.
    pub(crate) fn wish(&self) -> Wish {
        Wish {
            lock_delay: self.lock_delay,
            json: self.json,
            ..Wish::alone(&self.name, self.ttl)
        }
    }

    /// What is run while this one leads.
    pub(crate) fn work(&self, wish: &Wish) -> Result<Work, Failure> {
        Work::new(&self.command, wish, self.grace)
    }
}

fn every(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if (Election::LOOK_EVERY_MIN..=Duration::from_secs(3600)).contains(&span) {
        Ok(span)
    } else {
        Err("the pause between two looks is 10ms to 1h".into())
    }
}
