//! Handles: a client leaves them in a folder, and any client may take one.

use std::path::Path;

use leasehold::Mode;
use leasehold::handle::Handle;

use super::Task;
use crate::programs::history::{HeldMode, HoldNumber, What};
use crate::programs::operation::{LOCKS, LockIndex};

impl Task<'_> {
    /// Writes the handle of the guard to a file.
    pub(super) fn detach(&mut self) {
        let Some((hold, guard)) = self.guards.pop() else {
            return;
        };
        if self.guards.iter().any(|(other, _)| *other == hold) {
            // The library makes no handle of one of several shares.
            self.guards.push((hold, guard));
            return;
        }
        self.look();
        let lock = LOCKS
            .iter()
            .position(|lock| guard.key().as_str() == format!("{}{lock}", self.assignment.prefix));
        let lock = lock.expect("one of the locks");
        self.ending(hold, "detaches");
        match guard.into_handle() {
            Ok(handle) => {
                self.leave(lock, hold, &handle);
            }
            Err(error) => self.log.failed("into_handle", &error),
        }
    }

    /// Leaves a handle for any client. The others see its file only once it is complete.
    fn leave(&self, lock: usize, hold: HoldNumber, handle: &Handle) {
        let number = self.assignment.number;
        let file = self
            .assignment
            .folder
            .join(format!("{lock}-{number}-{hold}"));
        let unfinished = file.with_file_name(format!("taken by {number} while it is written"));
        let written = std::fs::write(&unfinished, handle.reveal());
        let left = written.and_then(|()| std::fs::rename(unfinished, &file));
        left.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    /// Takes one of the handles that a client left, so that no other client gets it.
    fn take_handle(&self) -> Option<(LockIndex, Handle)> {
        let folder: &Path = &self.assignment.folder;
        let files = std::fs::read_dir(folder).expect("the folder of handles");
        for file in files {
            let path = file.expect("a file").path();
            let name = path.file_name()?.to_str()?.to_owned();
            let Some((lock, _)) = name.split_once('-') else {
                continue;
            };
            let taken = folder.join(format!("taken by {} {name}", self.assignment.number));
            if !name.starts_with("taken") && std::fs::rename(&path, &taken).is_ok() {
                let text = std::fs::read_to_string(&taken).expect("a handle");
                let handle = text.parse().expect("a handle");
                return Some((lock.parse().expect("a lock"), handle));
            }
        }
        None
    }

    pub(super) async fn adopt(&mut self) {
        let Some((lock, handle)) = self.take_handle() else {
            return;
        };
        match self.client().adopt(&handle).await {
            Ok(guard) => {
                let hold = self.log.next_hold();
                let fence = guard.fence().get();
                let mode = match guard.mode() {
                    Mode::Exclusive => HeldMode::Exclusive,
                    Mode::Shared => HeldMode::Shared,
                    Mode::Permit(_) => HeldMode::Permit,
                };
                self.note(What::Adopted {
                    hold,
                    lock,
                    mode,
                    fence,
                });
                self.keep(hold, guard);
            }
            Err(error) => self.log.handle_failed("adopt", &error),
        }
    }

    pub(super) async fn renew_handle(&self) {
        let Some((lock, handle)) = self.take_handle() else {
            return;
        };
        match self.client().renew(&handle).await {
            Ok(handle) => {
                self.leave(lock.into(), self.log.next_hold(), &handle);
            }
            Err(error) => self.log.handle_failed("renew of a handle", &error),
        }
    }

    pub(super) async fn release_handle(&self) {
        let Some((_, handle)) = self.take_handle() else {
            return;
        };
        if let Err(error) = self.client().release(&handle).await {
            self.log.handle_failed("release of a handle", &error);
        }
    }
}
