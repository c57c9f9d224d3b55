use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use serde_json::Value;

use crate::args::StoreArgs;
use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::lock_options::LockOptions;
use crate::message::Message;
use crate::output::Output;
use crate::own_client::OwnClient;
use crate::run::end::End;
use crate::run::hold::Hold;
use crate::run::job_control;
use crate::run::nesting::Nesting;
use crate::run::once::Pipes;
use crate::run::signals::Signals;
use crate::run::waiting::Request;
use crate::run::wrapper::{Job, Wrapper};
use crate::store_url::OpenStore;
use crate::work::CommandSpec;

/// Everything that is needed before acquiring a lock.
pub(crate) struct Stage<'a> {
    pub(crate) lock_options: &'a LockOptions,
    pub(crate) output: &'a Output,
    pub(crate) store: OpenStore,
    pub(crate) client: OwnClient,
    pub(super) nesting: Nesting,
}

impl<'a> Stage<'a> {
    /// Opens the store, and blocks the signals that the program reads. Call it before starting a
    /// thread.
    pub(crate) fn set(
        lock_options: &'a LockOptions,
        store: &StoreArgs,
        output: &'a Output,
    ) -> Result<(Self, SignalFd), Failure> {
        // Before the client starts its thread, which inherits what is blocked.
        let blocked = Signals::block()?;
        let choice = config::choose(store, &Environment::read())?;
        let store = OpenStore::open(&choice)?;
        lock_options.refuse_ttl_over(store.ttl_max())?;
        store.print_notice(output);
        let stage = Self {
            lock_options,
            output,
            nesting: Nesting::of_this_process(),
            client: store.client(),
            store,
        };
        Ok((stage, blocked))
    }

    /// Requests the locks.
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            client: &self.client,
            lock_options: self.lock_options,
            nesting: &self.nesting,
            output: self.output,
            lends: false,
        }
    }

    /// Runs the command under `hold`, and releases the locks. The command writes to `pipes`, or to the
    /// streams of this process.
    pub(super) async fn perform(
        &self,
        work: &CommandSpec,
        hold: Hold,
        signals: &Signals,
        pipes: Option<Pipes>,
    ) -> Result<End, Failure> {
        // If the guardian is killed, this process adopts the processes below it.
        prctl::set_child_subreaper(true).map_err(|errno| Failure::of_start(&errno))?;
        let job = Job {
            lock_options: self.lock_options,
            work,
            keep_until: work.min_hold.map(|span| SystemClock.now() + span),
            leases: self.store.leases(),
            descriptors: hold
                .owners()
                .filter_map(|owner| self.store.descriptor(owner))
                .collect(),
            outer_lock: self.nesting.with(hold.taken(self.store.place())),
            members: self.store.members(),
            outer: self.nesting.guardian_of_this_group(),
            output: pipes,
        };
        let fences = hold.fences();
        let wrapper = Wrapper::start(hold, job, signals, self.output)
            .map_err(|error| Failure::of("cannot start the guardian", &error))?;
        let end = wrapper.supervise().await?;
        if let End::Lost {
            broken: Some(lock), ..
        } = &end
        {
            self.say_who_broke(lock, fences.get(lock)).await;
        }
        Ok(end)
    }

    /// Prints who broke the lease with this fence, if the store answers soon.
    async fn say_who_broke(&self, lock: &str, fence: Option<&Value>) {
        let limit = SystemClock.now() + WHO_LIMIT;
        let found = within(&SystemClock, limit, self.client.last_break(lock)).await;
        if let Some(Ok(Some(record))) = &found
            && fence == Some(&record.fence.get().into())
        {
            self.output.say(&Message::Broken { lock, record });
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
                job_control::die_of_the_interrupt();
                ExitCode::of_signal(Signal::SIGINT as i32)
            }
        }
    }
}

/// How long reading the record of a break may delay the end.
const WHO_LIMIT: Duration = Duration::from_secs(2);
