//! What operators do with a request without its payload: look at it, and forget it.

use super::result::OnceResult;
use super::state::OnceState;
use super::{Once, OnceProgress};
use crate::store::{RECORD_MEMORY, Written};
use crate::types::{Error, ErrorKind};

impl Once {
    /// Returns how far the request is, without comparing its payload. Acquires no lock, and does not wait. A record that is not
    /// settled counts: the next caller may find another one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for an invalid name, [`ErrorKind::Unsupported`] if the store keeps no records,
    /// [`ErrorKind::Corrupt`] if the record is damaged, or a store that does not answer.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold::{Client, memory::MemoryStore, once::OnceProgress};
    ///
    /// let locks = Client::new(MemoryStore::new());
    /// let charge = locks.once("charge/4711");
    /// assert!(matches!(charge.progress().await?, OnceProgress::Vacant));
    /// let _ = charge.run(async |_| Ok::<_, String>("paid")).await?;
    /// assert!(matches!(charge.progress().await?, OnceProgress::Done(_)));
    /// assert!(charge.forget().await?);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn progress(&self) -> Result<OnceProgress, Error> {
        let record = self.client.record(self.key()?).lasting(self.retention);
        match record.read().await?.written {
            Some(written) => self.progress_in(&written),
            None => Ok(OnceProgress::Vacant),
        }
    }

    /// Forgets the request: the next caller runs it, with any payload. Returns whether there was a result or an attempt.
    /// Fails if an attempt is running.
    ///
    /// What the request has done is not undone. A caller that got the old result keeps it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] if a caller is running the request; otherwise as [`progress`](Self::progress), and those of
    /// [`Lock::try_acquire`](crate::Lock::try_acquire) and [`OnceRun::give_up`](super::OnceRun::give_up).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock. The request may be forgotten or not.
    pub async fn forget(&self) -> Result<bool, Error> {
        let Some(guard) = self.lock().try_acquire().await? else {
            let text = "a caller is running this request";
            return Err(Error::new(ErrorKind::Busy, text).with_key(self.key()?));
        };
        let record = guard.record().lasting(self.retention);
        let written = record.open().await?;
        let is_known = match &written {
            Some(written) => !matches!(self.progress_in(written)?, OnceProgress::Vacant),
            None => false,
        };
        if let Some(written) = written.filter(|_| is_known) {
            // As long as any value that it may cover at a member which misses this one.
            let kept_for = written.remaining.max(self.retention).max(RECORD_MEMORY);
            record.write(OnceState::Vacant.encode(), kept_for).await?;
        }
        guard.release_quietly().await;
        Ok(is_known)
    }

    fn progress_in(&self, written: &Written) -> Result<OnceProgress, Error> {
        let key = self.key()?;
        let state = OnceState::decode(&written.bytes).map_err(|error| error.with_key(key))?;
        Ok(match state {
            OnceState::Vacant => OnceProgress::Vacant,
            OnceState::Started(_) => OnceProgress::Begun,
            OnceState::Done { fence, result, .. } => {
                OnceProgress::Done(OnceResult::new(result, fence, written.remaining))
            }
        })
    }
}
