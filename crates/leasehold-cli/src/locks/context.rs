use std::path::Path;

use crate::locks::outer_runs::OuterRuns;
use crate::locks::release::Releasing;
use crate::locks::request::LockRequest;
use crate::options::lock_options::LockOptions;
use crate::output::Output;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::runtime::signals::Signals;
use crate::store::OpenStore;
use crate::store::addresses::Choice;
use crate::store::client::OwnClient;
use crate::system::SignalQueue;

/// Everything that is needed before acquiring a lock.
pub(crate) struct RunContext<'a> {
    pub(crate) lock_options: &'a LockOptions,
    pub(crate) output: &'a Output,
    pub(crate) store: OpenStore,
    pub(crate) client: OwnClient,
    pub(crate) outer_runs: OuterRuns,
    /// Whether the locks stay held after the command, by a handle.
    pub(crate) keeps_locks: bool,
}

impl<'a> RunContext<'a> {
    /// Opens the store, and blocks the signals that the program reads. Call it before starting a
    /// thread, and after the store was chosen: a configuration file may be a pipe, and a signal must end the wait for it.
    pub(crate) fn open(
        lock_options: &'a LockOptions,
        choice: &Choice,
        output: &'a Output,
    ) -> Result<(Self, SignalQueue), Failure> {
        // Before the client starts its thread, which inherits what is blocked.
        let blocked = Signals::block()?;
        let store = OpenStore::open(choice)?;
        store.print_notice(output);
        print_path_notice(lock_options, output);
        let context = Self {
            lock_options,
            output,
            outer_runs: OuterRuns::of_this_process(),
            client: store.holder(lock_options),
            keeps_locks: false,
            store,
        };
        Ok((context, blocked))
    }

    /// Releases the locks.
    pub(crate) fn releasing(&self) -> Releasing<'_> {
        Releasing {
            lock_options: self.lock_options,
            output: self.output,
        }
    }

    /// Requests the locks.
    pub(crate) fn request(&self) -> LockRequest<'_> {
        LockRequest {
            client: &self.client,
            lock_options: self.lock_options,
            outer_runs: &self.outer_runs,
            output: self.output,
            can_borrow: false,
        }
    }
}

/// Says that a lock which is named like a file is not a lock on that file.
fn print_path_notice(lock_options: &LockOptions, output: &Output) {
    let is_file = |name: &&str| name.starts_with('/') && Path::new(name).exists();
    if let Some(name) = lock_options.names().into_iter().find(is_file) {
        output.print_message(&Message::Notice(&format!(
            "{name:?} is the name of a lock here; flock on that file is not excluded"
        )));
    }
}
