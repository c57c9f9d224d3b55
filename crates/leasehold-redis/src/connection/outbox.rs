use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use leasehold::Error;
use tokio::sync::{Semaphore, TryAcquireError, oneshot};

use super::answer::Answer;
use super::answers::Answers;
use super::command::Command;
use super::failure;
use super::joining::{Joined, Joining};
use super::writing::Writing;

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
    /// Where the last request begins.
    last: usize,
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
    Joined(Box<Joined>),
    /// All requests before it that want to see what the server shows of itself.
    Shown(Vec<Answer>, usize),
}

impl Awaited {
    pub(super) fn is_answered(&self) -> bool {
        match self {
            Self::Request(request) => request.is_answered(),
            Self::Joined(joined) => joined.is_answered(),
            Self::Shown(shown, expected) => shown.len() == *expected,
        }
    }
}

/// What was asked together, and is answered together.
pub(super) struct Request {
    /// How many answers there will be.
    pub(super) expected: usize,
    pub(super) answers: Answers,
    /// Whether it wants what the server shows of itself, too.
    pub(super) is_shown: bool,
    pub(super) asker: oneshot::Sender<Result<Replies, Error>>,
}

impl Request {
    pub(super) fn is_answered(&self) -> bool {
        self.answers.len() == self.expected
    }
}

/// The answers to one request.
#[derive(Default)]
pub(crate) struct Replies {
    pub(crate) answers: Answers,
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
        self.ask_written(|out| out.add_all(commands), is_shown)
            .await
    }

    /// As [`ask`](Self::ask), for what `write` writes: the same each time, as it may have to wait for room.
    pub(super) async fn ask_written(
        &self,
        write: impl Fn(&mut Writing<'_>),
        is_shown: bool,
    ) -> Result<Replies, Error> {
        let mut put = self.put(&write, is_shown, false)?;
        if let Put::NeedsRoom(weight) = put {
            let room = self.room.acquire_many(weight).await;
            room.map_err(|_| self.end())?.forget();
            put = self.put(&write, is_shown, true)?;
        }
        match put {
            // Nobody answers any more where the connection was thrown away.
            Put::Awaited(replies) => replies.await.unwrap_or_else(|_| Err(self.end())),
            Put::Empty | Put::NeedsRoom(_) => Ok(Replies::default()),
        }
    }

    /// Has what `write` writes sent, or where it can be joined to the last request, one command for both; and
    /// waits for all answers.
    pub(super) async fn ask_joining(
        &self,
        write: impl Fn(&mut Writing<'_>),
        joining: &Joining<'_>,
    ) -> Result<Replies, Error> {
        let joined = self.next().join(joining, &self.room);
        match joined {
            Some(replies) => replies.await.unwrap_or_else(|_| Err(self.end())),
            None => self.ask_written(write, false).await,
        }
    }

    /// Puts a request behind the others, if there is room for it or `has_room`.
    fn put(
        &self,
        write: impl Fn(&mut Writing<'_>),
        is_shown: bool,
        has_room: bool,
    ) -> Result<Put, Error> {
        let mut next = self.next();
        if let Some(end) = &next.end {
            return Err(end.clone());
        }
        let start = next.bytes.len();
        let mut writing = Writing::behind(&mut next.bytes);
        write(&mut writing);
        let expected = writing.commands();
        if expected == 0 && !is_shown {
            return Ok(Put::Empty);
        }
        if !has_room {
            let weight = weight(expected) as u32;
            match self.room.try_acquire_many(weight) {
                Ok(room) => room.forget(),
                Err(TryAcquireError::NoPermits) => return Ok(Put::NeedsRoom(weight)),
                Err(TryAcquireError::Closed) => return Err(failure::closed()),
            }
        }
        let length = writing.keep();
        next.last = start;
        let (asker, replies) = oneshot::channel();
        next.awaited.push(Awaited::Request(Request {
            expected,
            answers: Answers::with_capacity(expected),
            is_shown,
            asker,
        }));
        if is_shown {
            // Also for a request that asks for nothing else.
            next.unshown += length.max(1);
        }
        if next.unshown >= SHOWN_EVERY {
            self.question(&mut next);
        }
        let writer = next.writer.take();
        drop(next);
        if let Some(writer) = writer {
            writer.wake();
        }
        Ok(Put::Awaited(replies))
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

impl Next {
    /// Puts a request into one command with the last one, if it may be joined to that, and there is room.
    fn join(&mut self, joining: &Joining<'_>, room: &Semaphore) -> Option<Receiver> {
        let Some(Awaited::Request(last)) = self.awaited.last() else {
            return None;
        };
        if last.expected != 1 || last.is_shown {
            return None;
        }
        let word = joining.last_word(&self.bytes[self.last..])?.to_vec();
        room.try_acquire().ok()?.forget();
        let Some(Awaited::Request(first)) = self.awaited.pop() else {
            return None;
        };
        self.bytes.truncate(self.last);
        joining.write(&word, &mut self.bytes);
        let (asker, replies) = oneshot::channel();
        let second = Request {
            expected: 1,
            answers: Answers::default(),
            is_shown: false,
            asker,
        };
        let joined = Box::new(Joined([first, second]));
        self.awaited.push(Awaited::Joined(joined));
        Some(replies)
    }
}

type Receiver = oneshot::Receiver<Result<Replies, Error>>;

/// What became of a request that was to be put behind the others.
enum Put {
    Awaited(Receiver),
    /// It asks for nothing.
    Empty,
    /// So much must be free first.
    NeedsRoom(u32),
}

/// One request may be greater than all the room there is.
fn weight(commands: usize) -> usize {
    commands.min(IN_FLIGHT_MAX)
}
