use std::fmt;
use std::sync::Mutex;

use leasehold::store::{BoxFuture, SessionContext, locked};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::caller::Caller;

/// A stream of requests and one of answers. It opens with the first request, and ends with its connection. If it
/// breaks, it closes the connection.
pub(super) struct Duplex<Q> {
    context: SessionContext,
    requests: UnboundedSender<Q>,
    /// The task that opens the stream and reads from it, until it is started.
    task: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl<Q: prost::Message + 'static> Duplex<Q> {
    /// Returns a stream for the method at `path`. `read` gets each answer, and `end` is called when no further one
    /// will come.
    pub(super) fn new<A: prost::Message + Default + 'static>(
        context: &SessionContext,
        (caller, path): (&Caller, &'static str),
        closed: &CancellationToken,
        read: impl FnMut(A) + Send + 'static,
        end: impl FnOnce() + Send + 'static,
    ) -> Self {
        let (requests, inbox) = unbounded_channel();
        let (caller, closed) = (caller.clone(), closed.clone());
        let task = async move {
            tokio::select! {
                ended = read_all(&caller, path, inbox, read) => {
                    tracing::debug!(path, ?ended, "a stream from etcd ended");
                    closed.cancel();
                }
                () = closed.cancelled() => {}
            }
            end();
        };
        Self {
            context: context.clone(),
            requests,
            task: Mutex::new(Some(Box::pin(task))),
        }
    }

    /// Sends a request, unless the stream has ended.
    pub(super) fn send(&self, request: Q) {
        let task = locked(&self.task).take();
        if let Some(task) = task {
            self.context.spawn(task);
        }
        // An error means that the stream has ended. Its `end` notifies the callers.
        let _ = self.requests.send(request);
    }
}

async fn read_all<Q, A>(
    caller: &Caller,
    path: &'static str,
    inbox: UnboundedReceiver<Q>,
    mut read: impl FnMut(A),
) -> Result<(), Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let mut answers = caller.stream(path, inbox).await?;
    while let Some(answer) = answers.message().await? {
        read(answer);
    }
    Ok(())
}

impl<Q> fmt::Debug for Duplex<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duplex").finish_non_exhaustive()
    }
}
