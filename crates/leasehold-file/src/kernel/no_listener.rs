//! The listener of a system whose kernel does not report that a file was closed: there is none, and waiters poll.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::kernel::retry_timer::RetryTimer;

/// Never exists.
#[derive(Debug)]
pub(crate) struct Listener(Infallible);

/// Never exists.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) retry_timer: RetryTimer,
    never: Infallible,
}

/// Never exists.
#[derive(Debug)]
pub(crate) struct Listening(Infallible);

impl Listener {
    pub(crate) fn start() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn watch(self: &Arc<Self>, _: &Path) -> io::Result<Watch> {
        Ok(Watch {
            retry_timer: RetryTimer::new(),
            never: self.0,
        })
    }
}

impl Watch {
    pub(crate) fn forgetful(self) -> Self {
        match self.never {}
    }

    pub(crate) fn listening(&self) -> Listening {
        match self.never {}
    }
}

impl Listening {
    #[expect(clippy::unused_async, reason = "the same signature as with a listener")]
    pub(crate) async fn changed(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
