use std::time::Duration;

use foldhash::HashMap;
use leasehold::Error;
use leasehold::clock::BootInstant;
use tokio::sync::oneshot;

use crate::resp::Value;
use crate::scripts::Script;

/// Commands that a caller wrote, past the engine.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) id: RawRequestId,
    pub(crate) bytes: Vec<u8>,
    pub(crate) commands: usize,
    /// The script that the commands call, if they call one.
    pub(crate) script: Option<&'static Script>,
}

/// The number of a raw request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RawRequestId(pub(crate) u64);

/// One reply for each command.
pub(crate) type RawReplies = Result<Vec<Value>, Error>;

/// The callers that wait for replies to their own commands.
#[derive(Debug, Default)]
pub(crate) struct RawRequests {
    last: u64,
    open: HashMap<RawRequestId, PendingCaller>,
}

#[derive(Debug)]
struct PendingCaller {
    limit: Duration,
    deadline: BootInstant,
    sender: oneshot::Sender<RawReplies>,
}

impl RawRequests {
    /// Enters a raw request.
    pub(crate) fn begin(
        &mut self,
        now: BootInstant,
        limit: Duration,
        sender: oneshot::Sender<RawReplies>,
    ) -> RawRequestId {
        self.last += 1;
        let id = RawRequestId(self.last);
        let waiting = PendingCaller {
            limit,
            deadline: now + limit,
            sender,
        };
        self.open.insert(id, waiting);
        id
    }

    /// Returns whether a caller still waits for the answer.
    pub(crate) fn is_open(&self, id: RawRequestId) -> bool {
        self.open.contains_key(&id)
    }

    /// Answers a raw request, unless it is too late.
    pub(crate) fn answer(&mut self, id: RawRequestId, answer: RawReplies) {
        if let Some(waiting) = self.open.remove(&id) {
            // A failed sending means that the caller is gone.
            let _ = waiting.sender.send(answer);
        }
    }

    /// Returns when the next raw request ends without an answer.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        self.open.values().map(|waiting| waiting.deadline).min()
    }

    /// Ends the raw requests that no server answered in time.
    pub(crate) fn handle_timeout(&mut self, now: BootInstant) {
        for (_, waiting) in self.open.extract_if(|_, waiting| waiting.deadline <= now) {
            let error = Error::no_answer_within(waiting.limit).with_unknown_effect();
            let _ = waiting.sender.send(Err(error));
        }
    }

    /// Ends all raw requests.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}
