use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use leasehold::clock::BootInstant;
use leasehold::store::{LockRequest, RenewReply, Term};
use leasehold::{Error, Fence, LostReason, Mode};

use crate::failure::failed;
use crate::format::holder_record;
use crate::kernel::lock_file::LockFile;
use crate::locking::occupancy;

/// A lock that an attempt took. Clones are the same lock.
#[derive(Clone, Debug)]
pub(crate) struct HeldLock {
    pub(crate) lock: Arc<LockFile>,
    pub(crate) mode: Mode,
    /// The seat of its record, if one was left.
    pub(crate) seat: Option<u64>,
    pub(crate) fence: Fence,
}

impl HeldLock {
    /// Returns whether the lock still excludes others.
    pub(crate) fn still_excludes(&self) -> Result<bool, Error> {
        let looked: io::Result<bool> = self.lock.still_excludes();
        looked.map_err(|error| failed("look up the lock file", self.lock.path(), error))
    }

    /// Answers a renewal of `request` at `now`, whose owner holds this lock.
    pub(crate) fn renewal(&self, request: &LockRequest, now: BootInstant) -> RenewReply {
        if self.mode != request.mode && !self.is_downgraded_by(request) {
            return RenewReply::Lost(LostReason::Gone);
        }
        match self.still_excludes() {
            Ok(true) => RenewReply::Renewed(Term::endless(now)),
            Ok(false) => RenewReply::Lost(LostReason::Gone),
            Err(error) => RenewReply::Unknown(error),
        }
    }

    /// Returns whether renewing `request` converts this lock to a shared one.
    pub(crate) fn is_downgraded_by(&self, request: &LockRequest) -> bool {
        (self.mode, request.mode) == (Mode::Exclusive, Mode::Shared)
    }

    /// Converts the lock to a shared one for `request`, after updating its record for readers of the
    /// record. Returns `None` if the lock was lost over that.
    ///
    /// After an error, the lock is exclusive as before. It may then also have the byte of the
    /// readers, which keeps out no request that is not out already.
    pub(crate) fn downgraded(self, request: &LockRequest) -> Result<Option<Self>, Error> {
        let file = self.lock.file();
        let record = || match self.seat {
            None => Ok(()),
            Some(seat) => {
                let record = holder_record::encode(request, self.fence);
                file.write_all_at(&record, holder_record::offset(seat))
            }
        };
        let downgraded = occupancy::enter(file, request.mode)
            .and_then(|()| occupancy::withdraw_writer(file))
            .and_then(|()| record())
            .and_then(|()| self.lock.downgrade())
            .map_err(|error| failed("share", self.lock.path(), error))?;
        Ok(downgraded.then_some(Self {
            mode: request.mode,
            ..self
        }))
    }
}
