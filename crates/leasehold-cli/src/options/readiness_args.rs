use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::readiness::{Hooks, Readiness};

/// How other programs see that the lock is held. Part of the subcommands that hold one for long.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ReadinessArgs {
    /// Keep FILE while the lock is held, for probes.
    ///
    /// It contains the name of the lock and the fence. It is removed when the lock is lost or released, and at the start;
    /// a leasehold that is killed leaves it.
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,

    /// Run LINE with `sh -c` once the lock is held.
    ///
    /// Beside the command, which does not wait for it. LINE has LEASEHOLD_EVENT (`acquired`), LEASEHOLD_NAME and
    /// LEASEHOLD_FENCE. It waits for an earlier hook; one that fails is a warning.
    #[arg(long, value_name = "LINE")]
    pub(crate) on_acquired: Option<OsString>,

    /// Run LINE with `sh -c` once the lock is lost.
    ///
    /// Beside the end of the command. LINE has LEASEHOLD_EVENT (`lost`), LEASEHOLD_NAME and LEASEHOLD_REASON. It waits at
    /// most 2s for the hook of --on-acquired. A lock that is released is not lost. At its end, leasehold waits at most 10s
    /// for the last hook.
    #[arg(long, value_name = "LINE")]
    pub(crate) on_lost: Option<OsString>,
}

impl ReadinessArgs {
    /// `output`, which also shows other programs whether the lock is held. `prepare` changes the environment of each hook.
    pub(crate) fn attach_to(
        &self,
        output: Output,
        prepare: fn(&mut Command),
    ) -> Result<Output, Failure> {
        let warnings = output.clone();
        let hooks = Hooks::new(
            self.on_acquired.clone(),
            self.on_lost.clone(),
            prepare,
            move |text| warnings.print_message(&Message::Warning(text)),
        )?;
        let readiness = Readiness::new(self.ready_file.clone(), hooks).map_err(|error| {
            let file = self.ready_file.clone().unwrap_or_default();
            Failure::new(
                ExitCode::IO,
                format!("cannot write --ready-file {}: {error}", file.display()),
            )
        })?;
        Ok(output.with_readiness(readiness))
    }
}
