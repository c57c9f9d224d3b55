//! Runs a command under locks, and ends it in time if a lock is lost.
//!
//! The wrapper, this process, holds the locks. A second process, the [guardian](crate::guardian), runs the
//! command, so that the command ends even if the wrapper is killed.

pub(crate) mod end;
pub(crate) mod guardian_process;
mod job_control;
mod wrapper;

use std::process::ExitStatus;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::look::Owner;
use leasehold::store::Expiry;
use nix::sys::signal::Signal;

use crate::guardian::release_order::ReleaseOrder;
use crate::locks::context::RunContext;
use crate::locks::held_locks::HeldLocks;
use crate::options::command_spec::CommandSpec;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::runtime::signals::Signals;
use crate::supervise::end::End;
use crate::supervise::guardian_process::Pipes;
use crate::supervise::wrapper::{Job, Wrapper};
use crate::system::adopt_orphans;

impl RunContext<'_> {
    /// Runs the command under `hold`, and releases the locks. The command writes to `pipes`, or to the
    /// streams of this process.
    pub(crate) async fn perform(
        &self,
        command: &CommandSpec,
        hold: HeldLocks,
        signals: &Signals,
        pipes: Option<Pipes>,
    ) -> Result<End, Failure> {
        // If the guardian is killed, this process adopts the processes below it.
        adopt_orphans().map_err(|error| Failure::of_start(&error))?;
        let job = Job {
            lock_options: self.lock_options,
            command,
            keep_until: command.min_hold.map(|span| SystemClock.now() + span),
            has_leases: self.client.guarantees().expiry == Expiry::Lease,
            descriptors: hold
                .owners()
                .filter_map(|owner| self.store.descriptor(owner))
                .collect(),
            release_order: self.release_order(command, &hold),
            outer_lock: self.outer_runs.with(hold.taken(self.store.location())),
            members: self.store.members(),
            outer: self.outer_runs.guardian_of_this_group(),
            output: pipes,
        };
        let (owners, fences) = (hold.owners().collect::<Vec<_>>(), hold.fences());
        let began = SystemClock.now();
        let name = &self.lock_options.name;
        self.output.mark_ready(name, fences.get(name));
        // What was said so far comes before the output of the command.
        self.output.flush();
        let wrapper = Wrapper::start(hold, job, signals, self.output)
            .map_err(|error| Failure::of("cannot start the guardian", &error))?;
        let end = wrapper.supervise().await?;
        if let End::Ended {
            status,
            is_released: true,
            ..
        } = &end
        {
            self.print_released(began, *status);
        }
        if let End::Lost {
            broken: Some(lock), ..
        } = &end
        {
            self.print_who_broke(lock, &owners).await;
        }
        Ok(end)
    }

    /// How the guardian releases the locks if this process is killed. `None` if they must outlast the command: with
    /// --handle-file, with --min-hold, or with a lock delay, because late writes of the command may still arrive.
    fn release_order(&self, command: &CommandSpec, hold: &HeldLocks) -> Option<ReleaseOrder> {
        let outlasts = self.keeps_locks
            || command.min_hold.is_some()
            || self.lock_options.lock_delay.is_some();
        let addresses = self.store.addresses().filter(|_| !outlasts)?;
        Some(ReleaseOrder {
            urls: addresses.urls.clone(),
            password: addresses.password.clone(),
            handles: hold.handles(),
        })
        .filter(|order| !order.handles.is_empty())
    }

    /// Prints that the store released the locks, which were held since `began`.
    pub(crate) fn print_released(&self, began: BootInstant, status: ExitStatus) {
        self.output.print_message(&Message::Released {
            lock: &self.lock_options.name,
            held: SystemClock.now().since(began),
            code: ExitCode::of_command(status),
        });
    }

    /// Prints who broke the lease of one of these owners, if the store answers soon.
    async fn print_who_broke(&self, lock: &str, owners: &[Owner]) {
        let limit = SystemClock.now() + BREAK_RECORD_TIMEOUT;
        let found = within(&SystemClock, limit, self.client.last_break(lock)).await;
        if let Some(Ok(Some(record))) = &found
            && owners.contains(&record.owner)
        {
            self.output.print_message(&Message::Broken { lock, record });
        }
    }

    /// Waits for releases in progress, and returns the exit code.
    pub(crate) fn leave(self, end: End) -> ExitCode {
        drop(self.client);
        match end {
            End::With(code) => code,
            End::Ended { status, .. } => ExitCode::of_command(status),
            End::Lost { .. } => ExitCode::LOST,
            End::Interrupted => {
                let code = ExitCode::of_signal(Signal::SIGINT as i32);
                self.output.print_message(&Message::End(code));
                self.output.flush();
                job_control::die_by_interrupt();
                ExitCode::of_signal(Signal::SIGINT as i32)
            }
        }
    }
}

/// How long reading the record of a break may delay the end.
const BREAK_RECORD_TIMEOUT: Duration = Duration::from_secs(2);
