//! The background process of `acquire --renew-for`: it renews the lease of a handle, and replaces the handle in its file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Parser;
use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::handle::Handle;
use leasehold::{Client, ErrorKind};
use nix::sys::signal::SigSet;
use nix::unistd::setsid;

use crate::commands::holding::handle::handle_file::{HandleFile, ONLY_ITS_OWNER, is_same_lease};
use crate::commands::holding::handle::handle_source::HandleSource;
use crate::config;
use crate::options::store_args::StoreArgs;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::output::time_text::timestamp;
use crate::runtime::runtime;
use crate::store::OpenStore;
use crate::system::own_program;

/// The subcommand that the program uses to start itself as a renewer.
const RENEWER: &str = "__renewer";

/// The arguments of the renewer. Neither a handle nor a URL is among them: every user of the machine can read them.
#[derive(Debug, Parser)]
#[command(name = RENEWER)]
pub(crate) struct RenewerArgs {
    /// The file with the handle.
    #[arg(long)]
    handle_file: PathBuf,

    /// When it ends, in nanoseconds since boot.
    #[arg(long)]
    until: u64,
}

impl RenewerArgs {
    /// The arguments, if the program was started as a renewer.
    pub(crate) fn of_this_process() -> Option<Result<Self, clap::Error>> {
        let mut args = std::env::args_os().skip(1).peekable();
        let is_renewer = args.peek().is_some_and(|subcommand| subcommand == RENEWER);
        is_renewer.then(|| Self::try_parse_from(args))
    }
}

/// Starts a renewer for the handle in `path`, which ends after `span`.
pub(super) fn start(path: &Path, span: Duration, store: &StoreArgs) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::of("cannot start the renewer", &error);
    let path = std::path::absolute(path).map_err(failed)?;
    let until = SystemClock::as_other_processes_read(SystemClock.now() + span);
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(ONLY_ITS_OWNER);
    let log: File = options.open(log_of(&path)).map_err(failed)?;
    let mut renewer = Command::new(own_program().map_err(failed)?);
    renewer
        .arg0("leasehold")
        .arg(RENEWER)
        .arg("--handle-file")
        .arg(&path)
        .arg(format!("--until={}", until.as_nanos()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    if let Some(urls) = &store.store {
        renewer.env("LEASEHOLD_STORE", urls);
    }
    renewer.spawn().map(drop).map_err(failed)
}

/// The file with the messages of the renewer.
fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".log");
    name.into()
}

/// Renews until the time is over, the file is gone, or the lock is lost.
pub(crate) fn renew_in_background(args: &RenewerArgs) -> ExitCode {
    let output = Output::new(false);
    let code = renew(args, &output).unwrap_or_else(|failure| {
        output.print_message(&Message::Error(&failure));
        failure.code
    });
    output.flush();
    let log = log_of(&args.handle_file);
    if fs::metadata(&log).is_ok_and(|found| found.len() == 0) {
        // It ended as it should.
        let _ = fs::remove_file(log);
    }
    code
}

fn renew(args: &RenewerArgs, output: &Output) -> Result<ExitCode, Failure> {
    // The signals of the caller's session are not for this process, and a signal to it must end it.
    let _ = setsid();
    SigSet::empty()
        .thread_set_mask()
        .map_err(|errno| Failure::of_start(&errno))?;
    let choice = config::choose_store(&StoreArgs::default(), output)?;
    let store = OpenStore::open(&choice)?;
    let client = store.client();
    let renewer = Renewer {
        path: &args.handle_file,
        until: BootInstant::from_nanos(args.until),
        client: &client,
        output,
    };
    runtime()?.block_on(renewer.run())
}

struct Renewer<'a> {
    path: &'a Path,
    until: BootInstant,
    client: &'a Client,
    output: &'a Output,
}

impl Renewer<'_> {
    async fn run(&self) -> Result<ExitCode, Failure> {
        let Some(first) = self.handle()? else {
            return Ok(ExitCode::SUCCESS);
        };
        let mut pause = first.ttl() / 3;
        loop {
            let next = SystemClock.now() + pause;
            SystemClock.sleep_until(next.min(self.until)).await;
            // Other commands may have replaced the handle, and `release` removes the file.
            let Some(handle) = self.handle()? else {
                return Ok(ExitCode::SUCCESS);
            };
            if !is_same_lease(&handle, &first) {
                return Ok(ExitCode::SUCCESS);
            }
            if SystemClock.now() >= self.until {
                self.warn("the time of --renew-for is over; the lock is no longer renewed");
                return Ok(ExitCode::SUCCESS);
            }
            match self.client.renew(&handle).await {
                Ok(renewed) => {
                    if !HandleFile::prepare(self.path)?.replace(&renewed)? {
                        return Ok(ExitCode::SUCCESS);
                    }
                    pause = renewed.ttl() / 3;
                }
                Err(error) if error.kind() == ErrorKind::Lost => {
                    // A `release` that has not removed the file yet is no loss.
                    SystemClock
                        .sleep_until(SystemClock.now() + RELEASE_MAX)
                        .await;
                    return match self.handle()? {
                        Some(handle) if is_same_lease(&handle, &first) => Err(error.into()),
                        _ => Ok(ExitCode::SUCCESS),
                    };
                }
                Err(error) => {
                    self.warn(&format!("{error}; trying again"));
                    pause = handle.ttl() / 10;
                }
            }
        }
    }

    /// The handle in the file; `None` if the file is gone.
    fn handle(&self) -> Result<Option<Handle>, Failure> {
        if !self.path.exists() {
            return Ok(None);
        }
        HandleSource::File(self.path.to_owned())
            .read(self.output)
            .map(Some)
    }

    fn warn(&self, text: &str) {
        let now = timestamp(SystemClock.wall());
        self.output
            .print_message(&Message::Warning(&format!("{now} {text}")));
    }
}

/// How long `release` may take to remove the file after the store has answered.
const RELEASE_MAX: Duration = Duration::from_secs(1);
