//! Detaches guards while their leases last.

use std::sync::Arc;

use super::Handle;
use super::adopt;
use crate::env::clock::BootId;
use crate::guard::Guard;
use crate::types::{Error, ErrorKind};

impl Guard {
    /// Detaches the lock from the guard and leaves it held. The lease is no longer renewed, and lasts as
    /// long as its last renewal set it. A process that has the handle can adopt it before its deadline.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if locks end with their process, as on the file store: nothing could last
    /// longer. [`ErrorKind::InvalidInput`] while other guards of the [same hold](Self::reenter) live.
    /// [`ErrorKind::Lost`] if the guard is lost. After an error the guard is gone, as if it was dropped.
    pub fn into_handle(self) -> Result<Handle, Error> {
        let client = Arc::clone(&self.hold.client);
        let key = self.key().clone();
        let refused = |kind, text: String| Err(Error::new(kind, text).with_key(&key));
        adopt::leases_stand(&client.context).map_err(|error| error.with_key(&key))?;
        if let Err(reason) = self.check_now() {
            return Err(self.lost_error(reason));
        }
        let boot = BootId::of_this_process().map_err(|error| {
            let text = "cannot tell this boot of the machine from others";
            let error = Error::new(ErrorKind::Io, text).with_source(error);
            error.with_key(&key)
        })?;
        let mut hold = self.hold;
        if !hold.held_lease.has_one_guard() {
            let text =
                "other shares of the guard still hold the lock: no handle is made of one of them";
            return refused(ErrorKind::InvalidInput, text.to_owned());
        }
        client.let_go(&hold.held_lease)?;
        let Some(handle) = Handle::of(&hold.held_lease, boot, &*client.context.store) else {
            return refused(
                ErrorKind::Unsupported,
                "the lock has no deadline".to_owned(),
            );
        };
        hold.leave();
        Ok(handle)
    }
}
