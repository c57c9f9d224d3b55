use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;

use leasehold::background::blocking;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::pipe2;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use crate::output::{self, Stream};
use crate::run::once::stored::Kept;

/// What the command writes, on its way through: shown as it comes, and kept.
#[derive(Debug)]
pub(super) struct Capture {
    stdout: Tee,
    stderr: Tee,
}

/// The ends of the pipes that the command writes to.
#[derive(Debug)]
pub(in crate::run) struct Pipes {
    pub(in crate::run) stdout: OwnedFd,
    pub(in crate::run) stderr: OwnedFd,
}

#[derive(Debug)]
struct Tee {
    pipe: Receiver,
    to: Stream,
    /// Whether somebody still reads what is shown.
    is_shown: bool,
    kept: Kept,
}

impl Capture {
    /// Must be called inside a tokio runtime.
    pub(super) fn new() -> io::Result<(Self, Pipes)> {
        let (stdout, out) = Tee::new(Stream::Stdout)?;
        let (stderr, err) = Tee::new(Stream::Stderr)?;
        let pipes = Pipes {
            stdout: out,
            stderr: err,
        };
        Ok((Self { stdout, stderr }, pipes))
    }

    /// Passes on what is written while `work` runs, and what was written when it ends. What processes
    /// write that the command left behind in the background is neither shown nor kept.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        let (over, is_over) = watch::channel(false);
        let working = async move {
            let output = work.await;
            over.send_replace(true);
            output
        };
        let (output, stdout, stderr) = tokio::join!(
            working,
            self.stdout.pass_on(is_over.clone()),
            self.stderr.pass_on(is_over),
        );
        stdout.and(stderr).map(|()| output)
    }

    /// What is kept of both streams.
    pub(super) fn into_kept(self) -> (Kept, Kept) {
        (self.stdout.kept, self.stderr.kept)
    }
}

impl Tee {
    fn new(to: Stream) -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
        let tee = Self {
            pipe: Receiver::from_owned_fd(reader)?,
            to,
            is_shown: true,
            kept: Kept::default(),
        };
        Ok((tee, writer))
    }

    /// Until nobody has the pipe open to write, or until all is over and what was in the pipe then is read.
    async fn pass_on(&mut self, mut is_over: watch::Receiver<bool>) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = tokio::select! {
                biased;
                // Its sender lives as long as the work, whose end it tells.
                _ = is_over.wait_for(|over| *over) => return self.pass_on_the_rest(&mut buffer).await,
                read = self.pipe.read(&mut buffer) => read?,
            };
            if read == 0 {
                return Ok(());
            }
            self.take(&buffer[..read]).await?;
        }
    }

    /// What was written before the end. It fits into the pipe; whoever writes on behind it is not waited for.
    async fn pass_on_the_rest(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let size = fcntl(&self.pipe, FcntlArg::F_GETPIPE_SZ)?;
        let mut left = usize::try_from(size).unwrap_or(0);
        while left > 0 {
            let most = left.min(buffer.len());
            let read = match nix::unistd::read(&self.pipe, &mut buffer[..most]) {
                Ok(0) | Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                read => read?,
            };
            left -= read;
            self.take(&buffer[..read]).await?;
        }
        Ok(())
    }

    /// Keeps the bytes, and shows them. Who reads slowly slows the command down, as without the pipe in
    /// between; but deadlines are passed on meanwhile, as this waits on a thread of its own.
    async fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.kept.add(bytes);
        if self.is_shown {
            let (to, bytes) = (self.to, bytes.to_vec());
            let shown = blocking(move || output::pass_on(to, &bytes)).await;
            // The command goes on though nobody listens: its effect is what matters.
            self.is_shown = shown.map_err(io::Error::other)?.is_ok();
        }
        Ok(())
    }
}
