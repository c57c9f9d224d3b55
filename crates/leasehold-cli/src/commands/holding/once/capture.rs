use std::future::Future;
use std::os::fd::OwnedFd;
use std::{io, mem};

use leasehold::store::BoxFuture;
use nix::errno::Errno;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use crate::commands::holding::once::stored::KeptOutput;
use crate::output::{self, Stream};
use crate::supervise::guardian_process::Pipes;

/// Passes on the output of the command as it comes, and keeps it.
pub(super) struct Capture {
    stdout: Tee,
    stderr: Tee,
}

struct Tee {
    pipe: Receiver,
    kept: KeptOutput,
    show: Show,
}

/// Output for one stream, written as fast as it is read.
struct Show {
    to: Stream,
    rest: Vec<u8>,
    /// The write in progress.
    under_way: Option<BoxFuture<'static, io::Result<()>>>,
    /// Why nothing more is written.
    failure: Option<io::Error>,
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

    /// Keeps and shows the output while `work` runs. Output at its end is kept, but not yet
    /// [shown](Self::show_the_rest). Later output of background processes that the command left behind
    /// is dropped.
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

    /// Takes the kept output of both streams.
    pub(super) fn take_kept(&mut self) -> (KeptOutput, KeptOutput) {
        let take = |tee: &mut Tee| mem::take(&mut tee.kept);
        (take(&mut self.stdout), take(&mut self.stderr))
    }

    /// Shows the remaining output. The reader may take any time.
    ///
    /// Cancel safe: a write in progress continues as long as the program runs.
    pub(super) async fn show_the_rest(&mut self) {
        tokio::join!(self.stdout.show.all(), self.stderr.show.all());
    }

    /// Takes the error that kept output from stdout. A reader that has gone is not an error.
    pub(super) fn take_stdout_error(&mut self) -> Option<io::Error> {
        let failure = self.stdout.show.failure.take();
        failure.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }

    /// Whether no output for stderr is pending, so that messages may be written there.
    pub(super) fn stderr_is_shown(&self) -> bool {
        self.stderr.show.under_way.is_none()
    }
}

impl Tee {
    fn new(to: Stream) -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = io::pipe()?;
        let tee = Self {
            pipe: Receiver::from_owned_fd(reader.into())?,
            kept: KeptOutput::default(),
            show: Show {
                to,
                rest: Vec::new(),
                under_way: None,
                failure: None,
            },
        };
        Ok((tee, writer.into()))
    }

    /// Reads until all writers have closed the pipe, or until the work is over and the pipe is empty. A
    /// slow reader slows the command down, as it would without this pipe.
    async fn pass_on(&mut self, mut is_over: watch::Receiver<bool>) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = tokio::select! {
                biased;
                // Its sender lives as long as the work.
                _ = is_over.wait_for(|over| *over) => return self.keep_the_rest(&mut buffer),
                read = async {
                    self.show.all().await;
                    self.pipe.read(&mut buffer).await
                } => read?,
            };
            if read == 0 {
                return Ok(());
            }
            self.take(&buffer[..read]);
        }
    }

    /// Reads the output before the end, which fits into the pipe. Later writers are not awaited.
    fn keep_the_rest(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut left = PIPE_MAX;
        while left > 0 {
            let most = left.min(buffer.len());
            let read = match nix::unistd::read(&self.pipe, &mut buffer[..most]) {
                Ok(0) | Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                read => read?,
            };
            left -= read;
            self.take(&buffer[..read]);
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        self.kept.add(bytes);
        self.show.rest.extend(bytes);
    }
}

/// The most bytes that a pipe keeps, unless root made it larger.
const PIPE_MAX: usize = 1 << 20;

impl Show {
    /// Writes until all is written or a write fails. The command continues even then, because its
    /// effect matters. Deadlines are passed on meanwhile, as this waits on a thread of its own.
    ///
    /// Cancel safe: the next call continues.
    async fn all(&mut self) {
        loop {
            if let Some(writing) = &mut self.under_way {
                let written = writing.await;
                self.under_way = None;
                if self.failure.is_none() {
                    self.failure = written.err();
                }
            }
            let (to, bytes) = (self.to, mem::take(&mut self.rest));
            if bytes.is_empty() || self.failure.is_some() {
                return;
            }
            let writing = output::apart(move || output::pass_on(to, &bytes));
            self.under_way = Some(Box::pin(writing));
        }
    }
}
