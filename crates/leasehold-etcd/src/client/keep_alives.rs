use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use leasehold::store::{SessionContext, locked};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::caller::Caller;
use super::duplex::Duplex;
use crate::proto::{KEEP_ALIVE_PATH, LeaseKeepAliveRequest, LeaseKeepAliveResponse};

/// The stream that renews all leases of a client.
#[derive(Debug)]
pub(crate) struct KeepAlives {
    stream: Duplex<LeaseKeepAliveRequest>,
    pending: Arc<Mutex<Pending>>,
    /// Has a token for each request without an answer.
    busy: TaskTracker,
}

/// The requests without an answer, by lease. The server answers the requests for one lease in their order, so an
/// answer belongs to the oldest one.
#[derive(Debug, Default)]
struct Pending {
    requests: HashMap<i64, VecDeque<oneshot::Sender<i64>>>,
    has_ended: bool,
}

impl KeepAlives {
    pub(super) fn new(
        context: &SessionContext,
        caller: &Caller,
        busy: &TaskTracker,
        closed: &CancellationToken,
    ) -> Self {
        let pending = Arc::<Mutex<Pending>>::default();
        let (reading, ending) = (Arc::clone(&pending), Arc::clone(&pending));
        let read = move |answer: LeaseKeepAliveResponse| {
            locked(&reading).answered(answer);
        };
        let end = move || {
            let mut pending = locked(&ending);
            pending.has_ended = true;
            pending.requests.clear();
        };
        Self {
            stream: Duplex::new(context, (caller, KEEP_ALIVE_PATH), closed, read, end),
            pending,
            busy: busy.clone(),
        }
    }

    /// Renews a lease. Returns its TTL in seconds: 0 if it does not exist, `None` if the stream broke.
    pub(crate) fn renew(&self, id: i64) -> impl Future<Output = Option<i64>> + use<> {
        let (answer, answered) = oneshot::channel();
        let mut pending = locked(&self.pending);
        if !pending.has_ended {
            pending.requests.entry(id).or_default().push_back(answer);
            // Under the mutex, so that the requests for one lease are sent in the order in which they wait.
            self.stream.send(LeaseKeepAliveRequest { id });
        }
        self.busy.track_future(async move { answered.await.ok() })
    }
}

impl Pending {
    fn answered(&mut self, answer: LeaseKeepAliveResponse) {
        let Some(waiting) = self.requests.get_mut(&answer.id) else {
            return;
        };
        if let Some(oldest) = waiting.pop_front() {
            // The caller may be gone.
            let _ = oldest.send(answer.ttl);
        }
        if waiting.is_empty() {
            self.requests.remove(&answer.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_belongs_to_the_oldest_request() {
        let mut pending = Pending::default();
        let mut ask = |id: i64| {
            let (answer, answered) = oneshot::channel();
            pending.requests.entry(id).or_default().push_back(answer);
            answered
        };
        let (mut first, mut second, mut other) = (ask(7), ask(7), ask(8));
        pending.answered(LeaseKeepAliveResponse { id: 7, ttl: 5 });
        pending.answered(LeaseKeepAliveResponse { id: 9, ttl: 5 });
        assert_eq!(first.try_recv(), Ok(5));
        assert!(second.try_recv().is_err() && other.try_recv().is_err());
        pending.answered(LeaseKeepAliveResponse { id: 7, ttl: 0 });
        pending.answered(LeaseKeepAliveResponse { id: 8, ttl: 6 });
        assert_eq!((second.try_recv(), other.try_recv()), (Ok(0), Ok(6)));
        assert!(pending.requests.is_empty());
    }
}
