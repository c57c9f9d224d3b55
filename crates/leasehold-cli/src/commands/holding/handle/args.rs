use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::options::lock_args::LockArgs;
use crate::options::span::span;
use crate::options::store_args::StoreArgs;

/// The arguments of `acquire`.
#[derive(Debug, Args)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) lock: LockArgs,

    /// Write the handle to FILE (mode 0600) and not to stdout.
    ///
    /// A file with a handle that is still valid is an error: without that handle, its lock could not be
    /// released.
    #[arg(long, value_name = "FILE")]
    pub(crate) handle_file: Option<PathBuf>,

    /// Let other machines renew the handle, too.
    ///
    /// Such a handle has no deadline that a machine could measure. `renew` and `run --handle-file` ask the store, and exit with
    /// 76 if the lease is over. Renew it before each step.
    #[arg(long)]
    pub(crate) portable: bool,

    /// Renew the lease in the background for SPAN.
    ///
    /// A background process on this machine renews the lease, and replaces the handle in FILE each time, until SPAN is over.
    /// It ends at its next renewal after `release`, or once FILE is gone or the lock is lost; to end it at once, kill it: the
    /// lock then ends with its TTL. It writes problems to FILE.log. Some CI systems kill the processes that a step leaves
    /// behind.
    #[arg(long, value_name = "SPAN", value_parser = span, requires = "handle_file")]
    pub(crate) renew_for: Option<Duration>,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `lock`, `store`, `mode`
    /// (`exclusive`, `shared` or `permit`), `permits`, `fence`, `ttl_ms`, `expires_in_ms` (how long the
    /// handle is valid without renewal) and `handle`, which is null if it went into a file. Values that
    /// do not apply are null.
    #[arg(long)]
    pub(crate) json: bool,

    /// The name of the lock.
    pub(crate) name: String,
}

/// The source of the handle for `renew` and `release`.
#[derive(Debug, Args)]
pub(crate) struct HandleArgs {
    /// Read the handle from FILE.
    ///
    /// Default: LEASEHOLD_HANDLE, then stdin.
    #[arg(long, value_name = "FILE")]
    pub(crate) handle_file: Option<PathBuf>,

    /// A mistake that gets its own error: other users can read the arguments of a process.
    #[arg(hide = true, num_args = 0.., value_name = "HANDLE")]
    pub(crate) bare: Vec<OsString>,

    /// The same mistake, as an option.
    #[arg(long = "handle", hide = true, value_name = "HANDLE")]
    pub(crate) named: Option<OsString>,
}

/// The arguments of `renew`.
#[derive(Debug, Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    pub(crate) handle: HandleArgs,

    /// The TTL from now on [default: as before].
    ///
    /// Never shortens the lease at the store. The deadline of the new handle may come sooner.
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) ttl: Option<Duration>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout, as `acquire` does.
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

    /// Print one JSON object on stdout.
    ///
    /// `version` (1), `lock`, `store` and `released`, which is false if the lock was no longer held by
    /// this handle.
    #[arg(long)]
    pub(crate) json: bool,
}
