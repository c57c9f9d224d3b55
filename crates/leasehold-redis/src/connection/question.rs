use std::time::Duration;

use foldhash::HashMap;
use leasehold::clock::BootInstant;
use leasehold::{Error, ErrorKind};
use tokio::sync::oneshot;

use crate::resp::Value;
use crate::scripts::Script;

/// Commands that a caller wrote, past the engine.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) id: QuestionId,
    pub(crate) bytes: Vec<u8>,
    pub(crate) commands: usize,
    /// The script that the commands call, if they call one.
    pub(crate) script: Option<&'static Script>,
}

/// The number of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QuestionId(pub(crate) u64);

/// What a caller waits for.
pub(crate) type Answer = Result<Vec<Value>, Error>;

/// The callers that wait for replies to their own commands.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    last: u64,
    open: HashMap<QuestionId, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    limit: Duration,
    deadline: BootInstant,
    sender: oneshot::Sender<Answer>,
}

impl Questions {
    /// Enters a question.
    pub(crate) fn begin(
        &mut self,
        now: BootInstant,
        limit: Duration,
        sender: oneshot::Sender<Answer>,
    ) -> QuestionId {
        self.last += 1;
        let id = QuestionId(self.last);
        let waiting = Waiting {
            limit,
            deadline: now + limit,
            sender,
        };
        self.open.insert(id, waiting);
        id
    }

    /// Returns whether a caller still waits for the answer.
    pub(crate) fn is_open(&self, id: QuestionId) -> bool {
        self.open.contains_key(&id)
    }

    /// Answers a question, unless it is too late.
    pub(crate) fn answer(&mut self, id: QuestionId, answer: Answer) {
        if let Some(waiting) = self.open.remove(&id) {
            // A failed sending means that the caller is gone.
            let _ = waiting.sender.send(answer);
        }
    }

    /// Returns when the next question ends without an answer.
    pub(crate) fn next_timeout(&self) -> Option<BootInstant> {
        self.open.values().map(|waiting| waiting.deadline).min()
    }

    /// Ends the questions that no server answered in time.
    pub(crate) fn handle_timeout(&mut self, now: BootInstant) {
        for (_, waiting) in self.open.extract_if(|_, waiting| waiting.deadline <= now) {
            let silent = format!("no answer within {:?}", waiting.limit);
            let error = Error::new(ErrorKind::Unreachable, silent).with_unknown_effect();
            let _ = waiting.sender.send(Err(error));
        }
    }

    /// Ends all questions.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}
