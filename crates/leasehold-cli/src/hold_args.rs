use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::{StoreArgs, span};
use crate::take_args::TakeArgs;

/// The arguments of `hold`.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    pub(crate) take: TakeArgs,

    /// Do not look at stdin: only a signal ends the hold. If the script is killed, somebody must send
    /// that, or the lock is held for ever.
    #[arg(long)]
    pub(crate) ignore_stdin: bool,

    /// Print the program's other messages as JSON too, one object a line, on stderr.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `acquire`.
#[derive(Debug, Args)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) take: TakeArgs,

    /// Write the handle to FILE, which only its owner may read, and not to stdout.
    #[arg(long, value_name = "FILE")]
    pub(crate) handle_file: Option<PathBuf>,

    /// Print one JSON object on stdout. Its `version` is 1 as long as no field of these changes its
    /// meaning or goes; others may come.
    ///
    /// `lock`, `store`, `mode` (`exclusive`, `shared` or `permit`), `permits`, `fence`, `ttl_ms`,
    /// `expires_in_ms` (until when the handle is good unless it is renewed) and `handle`, which is null
    /// where it went into a file. What does not apply is null.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the handle is that `renew` and `release` work with.
#[derive(Debug, Args)]
pub(crate) struct HandleArgs {
    /// Read the handle from FILE [default: LEASEHOLD_HANDLE, else stdin].
    #[arg(long, value_name = "FILE")]
    pub(crate) handle_file: Option<PathBuf>,

    /// Not here: everybody can read a command's arguments.
    #[arg(hide = true, num_args = 0.., value_name = "HANDLE")]
    pub(crate) bare: Vec<OsString>,

    /// Not here either.
    #[arg(long = "handle", hide = true, value_name = "HANDLE")]
    pub(crate) named: Option<OsString>,
}

/// The arguments of `renew`.
#[derive(Debug, Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    pub(crate) handle: HandleArgs,

    /// How long the lease lives from now on [default: as long as before]. It ends no lease sooner that
    /// stands for longer.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) ttl: Option<Duration>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout: as `acquire` does, with the same `version`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) handle: HandleArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout: `version` (1), `lock`, `store` and `released`, which is false if
    /// the lock was not held by this handle any more.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `hold` does, as its help says.
pub(crate) const HOLD: &str = r#"Hold a lock for a script, until its stdin is closed or a signal comes.

Waits for the lock NAME, prints one line of JSON on stdout when it is held, and keeps it. When the
other end of its stdin is closed, as when the script ends in whatever way, it frees the lock and
exits with 0; after a signal (SIGTERM, SIGINT, SIGHUP, SIGQUIT) it frees it too and exits with
128+n. If the lock is lost it prints a second line and exits with 76: the script must stop what it
does under the lock, which nobody else ends for it (`leasehold run` does). A stdin that is closed
while it waits counts as not acquired in time.

The lines have `version`, which is 1 as long as no field of these changes its meaning or goes, and
`event`. `held` has `lock`, `store`, `mode`, `permits`, `fence`, `ttl_ms`, `expires_in_ms` (until
when the lock is held even if no renewal succeeds; null where nothing expires) and `waited_ms`;
`lost` has `lock` and `reason`. What does not apply is null.

In bash:

    coproc HOLD { exec leasehold hold deploy; }
    pid=$HOLD_PID
    read -r held <&"${HOLD[0]}" || { wait "$pid"; exit; }   # not held
    ./deploy.sh
    exec {HOLD[1]}>&-   # frees the lock
    wait "$pid"         # 76 if it was lost meanwhile

Its stdin must be a pipe, a socket or a terminal. /dev/null and files are at their end already, and
are refused; with --ignore-stdin only a signal ends the hold."#;

/// What `acquire` does, as its help says.
pub(crate) const ACQUIRE: &str = r#"Acquire a lock, print a handle to it, and end.

Nobody keeps the lock: it is lost when its TTL is over, unless `leasehold renew` comes before, and
TTLs end at the longest of the store (60s, unless its set says otherwise). Whoever can wait in one
process uses `leasehold run` or `leasehold hold`, which renew.

A handle is good on the machine it was made on, until its deadline or the next restart; `renew`
makes a new one with a later deadline. `leasehold release` takes any. Copies of a handle are one
holder: all who renew one hold the lock together, with one fence. A handle is a secret: whoever has
it can free the lock. So it is read from stdin, from LEASEHOLD_HANDLE or from a file, and never
from the arguments. LEASEHOLD_HANDLE goes before stdin, also where it was inherited: do not export it
to steps that have locks of their own.

In bash:

    handle=$(leasehold acquire --ttl 60s deploy) || exit
    ./first-step.sh
    handle=$(leasehold renew <<< "$handle") || exit
    ./second-step.sh
    leasehold release <<< "$handle"

On files locks end with their process, and there are no handles: use `leasehold hold` there."#;
