//! The listener of a system whose kernel does not report that a file was closed: there is none, and waiters poll.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Never exists.
#[derive(Debug)]
pub(crate) struct Listener(Infallible);

/// Never exists.
#[derive(Debug)]
pub(crate) struct Watch(Infallible);

impl Listener {
    pub(crate) fn start() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn watch(self: &Arc<Self>, _: &Path) -> io::Result<Watch> {
        match self.0 {}
    }

    pub(crate) fn watch_folder(&self, _: &Path) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn watches_folder(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "the same signature as with a listener")]
pub(crate) async fn read(listener: Arc<Listener>, _: impl Fn(Option<&OsStr>)) {
    match listener.0 {}
}

impl Watch {
    pub(crate) fn forgetful(self) -> Self {
        match self.0 {}
    }

    #[expect(clippy::unused_async, reason = "the same signature as with a listener")]
    pub(crate) async fn changed(&self) -> bool {
        match self.0 {}
    }
}
