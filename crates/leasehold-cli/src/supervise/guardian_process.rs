use std::ffi::OsString;
use std::io::{self, Write as _, pipe};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use leasehold::clock::{BootInstant, SystemClock};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe as tokio_pipe;

use crate::config;
use crate::guardian::args::GUARDIAN;
use crate::guardian::protocol::{ControlMessage, Report};
use crate::guardian::release_order::ReleaseOrder;
use crate::locks::outer_runs::{self, OuterRuns};
use crate::system::own_program;

/// The guardian, for the wrapper: a child process and two pipes.
#[derive(Debug)]
pub(crate) struct GuardianProcess {
    control: tokio_pipe::Sender,
    reports: Lines<BufReader<tokio_pipe::Receiver>>,
}

/// The ends of the pipes that the command writes to.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// How the guardian runs the command.
#[derive(Debug)]
pub(crate) struct SupervisorConfig<'a> {
    pub(crate) command: &'a [OsString],
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Whether the command gets the password of the store.
    pub(crate) gets_password: bool,
    pub(crate) deadline: Option<BootInstant>,
    pub(crate) grace: Duration,
    pub(crate) margin: Duration,
    /// The descriptors that hold the locks.
    pub(crate) locks: Vec<OwnedFd>,
    /// How to release the locks if this process is killed.
    pub(crate) release_order: Option<ReleaseOrder>,
    pub(crate) nested_in: Option<Pid>,
    pub(crate) outer_lock: String,
    pub(crate) foreground: bool,
    /// The pipes for the output of the command, unless it has the streams of this process.
    pub(crate) output: Option<Pipes>,
}

impl GuardianProcess {
    /// Starts the guardian, which starts the command. Must be called inside a tokio runtime.
    pub(crate) fn start(config: SupervisorConfig<'_>) -> io::Result<Self> {
        let (control_reader, mut control_writer) = pipe()?;
        if let Some(order) = config.release_order {
            let line = format!("{}\n", ControlMessage::Release(order));
            // The guardian does not read yet. Without an order, the leases end by themselves.
            if line.len() <= PIPE_ROOM {
                control_writer.write_all(line.as_bytes())?;
            }
        }
        let (report_reader, report_writer) = pipe()?;
        let mut guardian = Command::new(own_program()?);
        guardian
            .arg0("leasehold")
            .arg(GUARDIAN)
            .arg(format!("--control={}", pass_on(&control_reader)?))
            .arg(format!("--report={}", pass_on(&report_writer)?))
            .arg(format!("--grace={}", nanos(config.grace)))
            .arg(format!("--margin={}", nanos(config.margin)))
            .env(
                outer_runs::VARIABLE,
                OuterRuns::variable_for_guardian(&config.outer_lock),
            );
        if !config.gets_password {
            config::withhold_password(&mut guardian);
        }
        for lock in &config.locks {
            guardian.arg(format!("--keep={}", pass_on(lock)?));
        }
        if let Some(deadline) = config.deadline.map(SystemClock::as_other_processes_read) {
            guardian.arg(format!("--deadline={}", deadline.as_nanos()));
        }
        if config.foreground {
            guardian.arg("--foreground");
        }
        match config.nested_in {
            Some(outer) => guardian.arg(format!("--nested-in={outer}")),
            None => guardian.process_group(0),
        };
        guardian
            .arg("--")
            .args(config.command)
            .envs(config.environment)
            .stdin(Stdio::inherit());
        if let Some(Pipes { stdout, stderr }) = config.output {
            guardian.stdout(stdout).stderr(stderr);
        }
        drop(guardian.spawn()?);
        Ok(Self {
            control: tokio_pipe::Sender::from_owned_fd(control_writer.into())?,
            reports: BufReader::new(tokio_pipe::Receiver::from_owned_fd(report_reader.into())?)
                .lines(),
        })
    }

    /// Sends a message. Never blocks: a guardian that does not read is stopped or gone, and a guardian
    /// that is gone closes its pipe of reports.
    pub(crate) fn send(&self, message: ControlMessage) {
        let _ = self.control.try_write(format!("{message}\n").as_bytes());
    }

    /// The next report; `None` once the guardian is gone.
    ///
    /// Cancel safe: a report is taken only when it is returned.
    pub(crate) async fn next(&mut self) -> Option<Report> {
        let line = self.reports.next_line().await.ok()??;
        // An invalid report is treated as the end of a guardian that failed.
        line.parse().ok()
    }
}

/// Less than what fits into a new pipe.
const PIPE_ROOM: usize = 32 * 1024;

/// Leaves `fd` open in processes started from now on, and returns its number.
fn pass_on(fd: &(impl AsFd + AsRawFd)) -> io::Result<i32> {
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(fd.as_raw_fd())
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
