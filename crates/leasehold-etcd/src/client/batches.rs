//! Requests of concurrent callers that go to the server as one transaction.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::store::locked;
use leasehold::{Effect, Error, ErrorKind, Key};
use tokio::sync::oneshot;

use super::{EtcdClient, Failure};
use crate::proto::{Batchable, OperationAnswer, RequestOp, ResponseHeader, TxnRequest};

/// The requests that gather while others are on their way.
#[derive(Debug, Default)]
pub(super) struct Batches(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many callers wait for the answer to a request of their own.
    alone: usize,
    gathered: Vec<Gathered>,
    /// How many tasks send what gathers.
    sending: usize,
}

/// A request that waits for its batch, and then for its answer.
#[derive(Debug)]
struct Gathered {
    lock: Key,
    operation: RequestOp,
    limit: Duration,
    answer: oneshot::Sender<Outcome>,
}

/// The outcome of a request in a batch.
#[derive(Debug)]
enum Outcome {
    Answered(Box<OperationAnswer>, ResponseHeader),
    /// The batch had no effect, perhaps because of another request in it.
    Refused,
    Failed(Failure),
}

/// How a request goes to the server.
enum Way<'a> {
    Alone(Option<Turn<'a>>),
    InBatch {
        outcome: oneshot::Receiver<Outcome>,
        /// Whether the caller has to start the task that sends.
        begins: bool,
    },
}

/// Counts a caller whose own request is on its way.
struct Turn<'a>(&'a Batches);

/// How many requests are on their way alone before others gather: a few callers far from the server do not wait for each
/// other.
const ALONE_MAX: usize = 2;

/// How many requests gather before a second task sends batches, too. The server then works on one batch while this client
/// reads the answers of the other.
const SECOND_FROM: usize = 8;

/// The most requests in a batch. A server takes 128 operations in a transaction, and adds those of the nested ones.
const BATCH_MAX: usize = 60;

impl Batches {
    /// Decides how a request about a lock is sent. No batch contains two requests about one lock: all conditions in a
    /// transaction are about the time before it.
    fn enter(&self, lock: &Key, request: &impl Batchable, limit: Duration) -> Way<'_> {
        let mut state = locked(&self.0);
        if state.sending == 0 && state.alone < ALONE_MAX {
            state.alone += 1;
            return Way::Alone(Some(Turn(self)));
        }
        if state.gathered.iter().any(|other| other.lock == *lock) {
            return Way::Alone(None);
        }
        let (answer, outcome) = oneshot::channel();
        state.gathered.push(Gathered {
            lock: lock.clone(),
            operation: request.clone().into_operation().into(),
            limit,
            answer,
        });
        let begins = match state.sending {
            0 => true,
            1 => state.gathered.len() >= SECOND_FROM,
            _ => false,
        };
        state.sending += usize::from(begins);
        Way::InBatch { outcome, begins }
    }

    /// Returns the next batch, without the requests whose callers have ended. If there is none, the next caller begins anew.
    fn next(&self) -> Option<Vec<Gathered>> {
        let mut state = locked(&self.0);
        state
            .gathered
            .retain(|gathered| !gathered.answer.is_closed());
        if state.gathered.is_empty() {
            state.sending -= 1;
            return None;
        }
        let count = state.gathered.len().min(BATCH_MAX);
        Some(state.gathered.drain(..count).collect())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        locked(&self.0.0).alone -= 1;
    }
}

/// Sends batches one after the other. If its runtime ends before, the callers learn that they have no answer.
struct Sending {
    client: Arc<EtcdClient>,
    /// Whether nothing was left, so that another task may have begun.
    is_over: bool,
}

impl Sending {
    async fn run(mut self) {
        while let Some(batch) = self.client.batches.next() {
            self.send(batch).await;
        }
        self.is_over = true;
    }

    async fn send(&self, batch: Vec<Gathered>) {
        let limits = batch.iter().map(|gathered| gathered.limit);
        let limit = limits.max().unwrap_or_default();
        let parts = batch.into_iter();
        let (success, callers): (Vec<_>, Vec<_>) = parts
            .map(|gathered| (gathered.operation, gathered.answer))
            .unzip();
        let question = TxnRequest {
            compare: Vec::new(),
            success,
            failure: Vec::new(),
        };
        let (header, mut answers) = match self.client.call(question, limit).await {
            Ok(answer) => (
                answer.header.unwrap_or_default(),
                answer.responses.into_iter(),
            ),
            Err(failure) => {
                for caller in callers {
                    let outcome = match failure.has_effect() {
                        true => Outcome::Failed(failure.clone()),
                        false => Outcome::Refused,
                    };
                    // The caller may be gone.
                    let _ = caller.send(outcome);
                }
                return;
            }
        };
        for caller in callers {
            let answer = answers.next().and_then(|response| response.answer);
            let outcome = match answer {
                Some(answer) => Outcome::Answered(Box::new(answer), header),
                None => Outcome::Failed(other_form()),
            };
            let _ = caller.send(outcome);
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.is_over {
            let mut state = locked(&self.client.batches.0);
            state.sending -= 1;
            if state.sending == 0 {
                state.gathered.clear();
            }
        }
    }
}

impl EtcdClient {
    /// Calls a method as [`call`](Self::call) does, about one lock. If many callers do so at the same time, their requests go
    /// to the server as one.
    pub(crate) async fn call_batched<T: Batchable>(
        self: &Arc<Self>,
        lock: &Key,
        request: T,
        limit: Duration,
    ) -> Result<T::Answer, Failure> {
        // A server checks no rights on what is nested in a transaction.
        if self.connector.settings.names_a_user() {
            return self.call(request, limit).await;
        }
        let end = self.now() + limit;
        let (outcome, begins) = match self.batches.enter(lock, &request, limit) {
            Way::Alone(_turn) => return self.call(request, limit).await,
            Way::InBatch { outcome, begins } => (outcome, begins),
        };
        if begins {
            let sending = Sending {
                client: Arc::clone(self),
                is_over: false,
            };
            self.spawn(sending.run());
        }
        match self.in_time(end, outcome).await {
            Some(Ok(Outcome::Answered(answer, header))) => {
                T::read(*answer, header).ok_or_else(other_form)
            }
            Some(Ok(Outcome::Refused)) => self.call(request, end.since(self.now())).await,
            Some(Ok(Outcome::Failed(failure))) => Err(failure),
            Some(Err(_)) => {
                let text = "the runtime of the caller ended";
                let error = Error::new(ErrorKind::Unreachable, text);
                Err(Failure::Other(error.with_unknown_effect()))
            }
            None => {
                let error = Error::no_answer_within(limit).with_unknown_effect();
                Err(Failure::Other(error))
            }
        }
    }
}

impl Failure {
    /// Returns whether the call may have had an effect.
    fn has_effect(&self) -> bool {
        match self {
            Self::NoLease | Self::LeaseExists | Self::LoginExpired => false,
            Self::Other(error) => error.effect() == Effect::Unknown,
        }
    }
}

fn other_form() -> Failure {
    let text = "the answer to a transaction has another form";
    let error = Error::new(ErrorKind::InvalidResponse, text);
    Failure::Other(error.with_unknown_effect())
}
