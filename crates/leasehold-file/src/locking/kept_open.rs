use std::fs::File;
use std::path::Path;

use crate::kernel::listener::Watch;
use crate::kernel::lock_file;
use crate::locking::writer_yield::WriterYield;

/// A lock file that stays open from one try of a waiter to the next. A close after each try would wake the
/// waiters of other processes, and their closes would wake this one.
#[derive(Debug)]
pub(crate) struct KeptOpen {
    pub(crate) file: File,
    /// `None` without a waiter, or if the kernel does not notify.
    pub(crate) watch: Option<Watch>,
    /// How long the waiter yields to writers, unless it is a writer.
    pub(crate) writer_yield: WriterYield,
    /// Whether the file announces a waiting writer to requests that come to share the lock.
    pub(crate) is_announced: bool,
}

impl KeptOpen {
    pub(crate) fn new(file: File, writer_yield: WriterYield) -> Self {
        Self {
            file,
            watch: None,
            writer_yield,
            is_announced: false,
        }
    }

    /// Whether the lock at `path` is still the one on this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        // If the lookup fails, the file is opened again, which reports the reason.
        lock_file::is_under_its_name(&self.file, path).unwrap_or(false)
    }
}
