use std::future::pending;
use std::io;
use std::os::fd::AsFd as _;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{isatty, read};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::output::failure::Failure;

/// The stdin of `hold`. Only its end matters.
#[derive(Debug)]
pub(super) struct Stdin(io::Stdin);

/// The same, watched.
#[derive(Debug)]
pub(super) struct Watched(AsyncFd<io::Stdin>);

impl Stdin {
    /// Refuses a stdin that cannot be closed by another process.
    pub(super) fn to_be_watched() -> Result<Self, Failure> {
        let stdin = io::stdin();
        let failed = |errno: Errno| Failure::of("cannot look at stdin", &errno.desc());
        let mode = fstat(stdin.as_fd()).map_err(failed)?.st_mode;
        let kind = SFlag::from_bits_truncate(mode & SFlag::S_IFMT.bits());
        let has_another_end = kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK;
        if has_another_end || isatty(stdin.as_fd()).unwrap_or(false) {
            return Ok(Self(stdin));
        }
        Err(Failure::usage(
            "stdin is a file or /dev/null, and `hold` ends when its stdin closes; connect a pipe, a socket or a \
             terminal, or give --ignore-stdin",
        ))
    }

    /// Must be called inside a tokio runtime.
    #[allow(
        deprecated,
        reason = "its successor is unsafe, for types that give away a descriptor they do not own: \
                  stdin is there as long as the process"
    )]
    pub(super) fn watch(self) -> io::Result<Watched> {
        AsyncFd::with_interest(self.0, Interest::READABLE).map(Watched)
    }
}

impl Watched {
    /// Resolves at the end of the input. What is read is thrown away. Cancel safe.
    async fn closed(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            let stdin = ready.get_inner();
            // It may block, and belongs to others too: it is only read where that does not.
            let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            if poll(&mut polled, PollTimeout::ZERO)? == 0 {
                ready.clear_ready();
                continue;
            }
            match read(stdin.as_fd(), &mut [0; 4096]) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Resolves once stdin is closed or can no longer be read; never without one.
pub(super) async fn closed(stdin: Option<&Watched>) {
    match stdin {
        // A terminal that went away answers with an error.
        Some(stdin) => {
            let _ = stdin.closed().await;
        }
        None => pending().await,
    }
}
