use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use leasehold::Error;
use tokio::sync::{Semaphore, oneshot};

use super::answer::Answer;
use super::command::Command;
use super::failure;

/// How many commands may wait for answers; a frozen server must not fill our memory.
const IN_FLIGHT_MAX: usize = 4096;

/// After so many bytes the server is asked what it shows of itself, even where more goes out in the
/// same write: those in front need not wait for the answers to all the rest.
const SHOWN_EVERY: usize = 8 * 1024;

/// What all who ask a server want written next, for the one task that writes.
pub(super) struct Outbox {
    next: Mutex<Next>,
    /// For commands that are answered, or thrown away, in time.
    room: Semaphore,
    /// What a server is asked about itself: the commands, and how many they are.
    questions: (Vec<u8>, usize),
}

#[derive(Default)]
struct Next {
    bytes: Vec<u8>,
    awaited: Vec<Awaited>,
    /// How many bytes the requests have that end with what the server shows of itself then.
    unshown: usize,
    writer: Option<Waker>,
    /// Why nothing is written any more.
    end: Option<Error>,
}

/// To whom the next answers belong, in the order of the commands.
pub(super) enum Awaited {
    Request(Request),
    /// All requests before it that want to see what the server shows of itself.
    Shown(Vec<Answer>, usize),
}

impl Awaited {
    pub(super) fn is_answered(&self) -> bool {
        match self {
            Self::Request(request) => request.answers.len() == request.expected,
            Self::Shown(shown, expected) => shown.len() == *expected,
        }
    }
}

/// What was asked together, and is answered together.
pub(super) struct Request {
    /// How many answers there will be.
    pub(super) expected: usize,
    pub(super) answers: Vec<Answer>,
    /// Whether it wants what the server shows of itself, too.
    pub(super) is_shown: bool,
    pub(super) asker: oneshot::Sender<Result<Replies, Error>>,
}

/// The answers to one request.
#[derive(Default)]
pub(crate) struct Replies {
    pub(crate) answers: Vec<Answer>,
    /// What the server showed of itself after it, and maybe after others; nothing where that was not
    /// asked.
    pub(crate) shown: Arc<[Answer]>,
}

impl Outbox {
    pub(super) fn new(questions: &[Command]) -> Self {
        let mut bytes = Vec::new();
        questions
            .iter()
            .for_each(|question| question.write(&mut bytes));
        Self {
            next: Mutex::default(),
            room: Semaphore::new(IN_FLIGHT_MAX),
            questions: (bytes, questions.len()),
        }
    }

    /// Has `commands` sent in one write, and waits for all answers.
    pub(super) async fn ask(&self, commands: &[Command], is_shown: bool) -> Result<Replies, Error> {
        if commands.is_empty() && !is_shown {
            return Ok(Replies::default());
        }
        let weight = weight(commands.len());
        let room = self.room.acquire_many(weight as u32).await;
        room.map_err(|_| self.end())?.forget();
        let (asker, replies) = oneshot::channel();
        let request = Request {
            expected: commands.len(),
            answers: Vec::with_capacity(commands.len()),
            is_shown,
            asker,
        };
        self.put(commands, request)?;
        // Nobody answers any more where the connection was thrown away.
        replies.await.unwrap_or_else(|_| Err(self.end()))
    }

    fn put(&self, commands: &[Command], request: Request) -> Result<(), Error> {
        let mut next = self.next();
        if let Some(end) = &next.end {
            return Err(end.clone());
        }
        let before = next.bytes.len();
        commands
            .iter()
            .for_each(|command| command.write(&mut next.bytes));
        if request.is_shown {
            // Also for a request that asks for nothing else.
            next.unshown += (next.bytes.len() - before).max(1);
        }
        next.awaited.push(Awaited::Request(request));
        if next.unshown >= SHOWN_EVERY {
            self.question(&mut next);
        }
        let writer = next.writer.take();
        drop(next);
        if let Some(writer) = writer {
            writer.wake();
        }
        Ok(())
    }

    /// Hands over what is to be written, behind the bytes and the awaited that are there; if that is
    /// nothing, the task of `context` is woken once there is something.
    pub(super) fn take(
        &self,
        bytes: &mut Vec<u8>,
        awaited: &mut VecDeque<Awaited>,
        context: &Context<'_>,
    ) {
        let mut next = self.next();
        if next.awaited.is_empty() {
            next.writer = Some(context.waker().clone());
            return;
        }
        if next.unshown > 0 {
            self.question(&mut next);
        }
        std::mem::swap(bytes, &mut next.bytes);
        awaited.extend(next.awaited.drain(..));
    }

    /// Behind all else that the requests do: whatever the server shows then is true of all of them.
    fn question(&self, next: &mut Next) {
        let (bytes, count) = &self.questions;
        next.bytes.extend_from_slice(bytes);
        let shown = Awaited::Shown(Vec::with_capacity(*count), *count);
        next.awaited.push(shown);
        next.unshown = 0;
    }

    /// So many commands were answered together.
    pub(super) fn answered(&self, commands: usize) {
        self.room.add_permits(weight(commands));
    }

    /// Nothing is written any more, because of `error` unless it was closed before. Hands over what
    /// is not written.
    pub(super) fn close(&self, error: Error) -> Vec<Awaited> {
        let mut next = self.next();
        next.end.get_or_insert(error);
        next.bytes = Vec::new();
        // From here on whoever waits for room asks why there is none.
        self.room.close();
        std::mem::take(&mut next.awaited)
    }

    fn end(&self) -> Error {
        self.next().end.clone().unwrap_or_else(failure::closed)
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request may be greater than all the room there is.
fn weight(commands: usize) -> usize {
    commands.min(IN_FLIGHT_MAX)
}
