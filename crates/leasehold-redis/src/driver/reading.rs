//! What arrives on the connections of a driver, and when the kernel takes more bytes.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::task::AtomicWaker;
use leasehold::Error;
use leasehold::store::locked;
use leasehold_quorum::{MemberIndex, PerMember};

use crate::connection::readiness::Readiness;
use crate::connection::socket::{Socket, broken};
use crate::resp::Parser;

/// What arrives from all members, and which task waits for it.
#[derive(Debug)]
pub(super) struct Reading {
    members: PerMember<MemberReading>,
    /// The task that waits.
    reader: Mutex<Reader>,
    /// The number of the reader, which only a thread with the mutex above changes.
    number: AtomicU64,
    /// How often readers ran.
    polls: AtomicU64,
    /// Whether tasks of callers can be readers at all.
    is_for_callers: AtomicBool,
}

/// The task that waits for the sockets.
#[derive(Debug, Default)]
struct Reader {
    /// Each reader has a new number; odd ones are tasks of callers.
    number: u64,
    /// Wakes it if a connection is new or gone, and if another task is the reader.
    waker: Option<Waker>,
}

/// What arrives from one member.
#[derive(Debug, Default)]
struct MemberReading {
    incoming: Mutex<Option<Incoming>>,
    /// Whether its socket has bytes that the kernel did not take.
    is_blocked: AtomicBool,
    /// Wakes what keeps its connection open.
    task: AtomicWaker,
}

/// What arrives on one connection.
#[derive(Debug)]
pub(super) struct Incoming {
    socket: Arc<Socket>,
    parser: Parser,
    /// Whether bytes arrived that the engine has not taken in yet.
    is_unread: bool,
    /// Whether the last look ended before it had read all.
    has_more: bool,
    /// Why the connection cannot be used further.
    error: Option<Error>,
    /// The registration at a runtime, and the reader that made it.
    registered: Option<(u64, Readiness)>,
}

/// How much one look reads from a connection. The engine takes it in before the next one.
const READ_MAX: usize = 1024 * 1024;

impl Reading {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members: (0..members).map(|_| MemberReading::default()).collect(),
            reader: Mutex::default(),
            number: AtomicU64::new(0),
            polls: AtomicU64::new(0),
            is_for_callers: AtomicBool::new(true),
        }
    }

    /// Locks what arrives from a member. A thread that holds it does not wait for the driver's state.
    pub(super) fn member(&self, member: MemberIndex) -> MutexGuard<'_, Option<Incoming>> {
        let incoming = self.members[member].incoming.lock();
        incoming.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to read a connection. `parser` may have bytes of it.
    pub(super) fn open(&self, member: MemberIndex, socket: Arc<Socket>, parser: Parser) {
        let is_blocked = &self.members[member].is_blocked;
        is_blocked.store(false, Ordering::Relaxed);
        *self.member(member) = Some(Incoming {
            socket,
            parser,
            is_unread: true,
            has_more: false,
            error: None,
            registered: None,
        });
        self.wake();
    }

    /// Ends the reading of a connection. Nothing here keeps its socket open.
    pub(super) fn close(&self, member: MemberIndex) {
        drop(self.member(member).take());
    }

    /// Returns why the connection ended, if it did.
    pub(super) fn error(&self, member: MemberIndex) -> Option<Error> {
        self.member(member).as_mut()?.error.take()
    }

    /// The connection cannot be used further.
    pub(super) fn end(&self, member: MemberIndex, error: Error) {
        if let Some(incoming) = &mut *self.member(member) {
            incoming.end(error);
        }
        self.task(member).wake();
    }

    /// Wakes what keeps a connection open.
    pub(super) fn task(&self, member: MemberIndex) -> &AtomicWaker {
        &self.members[member].task
    }

    /// The kernel does not take all bytes for a member.
    pub(super) fn blocked(&self, member: MemberIndex) {
        let is_blocked = &self.members[member].is_blocked;
        is_blocked.store(true, Ordering::Release);
        self.wake();
    }

    /// Returns how often readers have run.
    pub(super) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Returns the number of the reader, if that is the client's thread.
    pub(super) fn reader_on_thread(&self) -> Option<u64> {
        let reader = self.number.load(Ordering::Acquire);
        reader.is_multiple_of(2).then_some(reader)
    }

    /// Returns whether tasks of callers can be readers.
    pub(super) fn is_for_callers(&self) -> bool {
        self.is_for_callers.load(Ordering::Relaxed)
    }

    /// Makes a task of a caller the reader, unless another one is. Returns its number.
    pub(super) fn begin_for_caller(&self) -> Option<u64> {
        let reader = self.reader_on_thread()?;
        self.replace(reader).then_some(reader + 1)
    }

    /// Makes the client's thread the reader, if a task of a caller is.
    pub(super) fn return_to_thread(&self) {
        let reader = self.number.load(Ordering::Acquire);
        if !reader.is_multiple_of(2) {
            self.replace(reader);
        }
    }

    /// Replaces a reader by the next one, unless that has happened. The former one wakes up, and ends.
    pub(super) fn replace(&self, reader: u64) -> bool {
        let mut current = locked(&self.reader);
        if current.number != reader {
            return false;
        }
        current.number += 1;
        self.number.store(current.number, Ordering::Release);
        let former = current.waker.take();
        drop(current);
        former.into_iter().for_each(Waker::wake);
        true
    }

    /// Notes how to wake the reader. Returns whether this is the number of the reader.
    fn register(&self, reader: u64, waker: &Waker) -> bool {
        let mut current = locked(&self.reader);
        if current.number != reader {
            return false;
        }
        match &mut current.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        true
    }

    /// Wakes the reader.
    pub(super) fn wake(&self) {
        let waker = locked(&self.reader).waker.take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Lets only the client's thread read: the runtime of a caller has no I/O.
    pub(super) fn refuse_callers(&self) {
        self.is_for_callers.store(false, Ordering::Relaxed);
    }

    /// Reads all that has arrived. Otherwise the reader is woken when something does, or when the kernel takes more bytes.
    /// Returns whether there is something to do, or `None` if another task is the reader.
    pub(super) fn poll(&self, reader: u64, context: &mut Context<'_>) -> Option<bool> {
        if !self.register(reader, context.waker()) {
            return None;
        }
        self.polls.fetch_add(1, Ordering::Relaxed);
        let mut is_any = false;
        for (index, member) in self.members.iter_enumerated() {
            is_any |= match &mut *self.member(index) {
                Some(incoming) => {
                    let is_new = incoming.register(reader);
                    let is_writable = member.is_blocked.load(Ordering::Acquire)
                        && incoming.poll_writable(context)
                        && member.is_blocked.swap(false, Ordering::AcqRel);
                    incoming.poll_read(context) || is_new || is_writable
                }
                None => false,
            };
        }
        Some(is_any)
    }

    /// Reads all that has arrived, without waiting. Returns whether there was something.
    pub(super) fn read(&self) -> bool {
        let mut is_any = false;
        for (index, member) in self.members.iter_enumerated() {
            member.is_blocked.store(false, Ordering::Release);
            if let Some(incoming) = &mut *self.member(index) {
                is_any |= incoming.read();
            }
        }
        is_any
    }
}

impl Incoming {
    /// Waits for the socket on the runtime that polls the caller, from now on. Returns whether this is new.
    fn register(&mut self, reader: u64) -> bool {
        // A reader that was replaced a moment ago leaves it to the next one.
        if self
            .registered
            .as_ref()
            .is_some_and(|(of, _)| *of >= reader)
        {
            return false;
        }
        // One runtime at a time has the socket.
        self.registered = None;
        match Readiness::of(&self.socket) {
            Ok(registered) => self.registered = Some((reader, registered)),
            Err(error) => self.end(broken(&error)),
        }
        // There may be bytes that came before.
        self.read();
        true
    }

    /// Reads what has arrived. The task is woken when there is more. Returns whether there was something.
    fn poll_read(&mut self, context: &mut Context<'_>) -> bool {
        let mut is_any = self.has_more && self.read();
        while self.error.is_none()
            && !self.has_more
            && let Some((_, registered)) = &self.registered
            && let Poll::Ready(ready) = registered.poll_readable(context)
        {
            if let Err(error) = ready {
                self.end(broken(&error));
                return true;
            }
            is_any |= self.read();
        }
        if self.has_more {
            context.waker().wake_by_ref();
        }
        is_any
    }

    fn poll_writable(&mut self, context: &mut Context<'_>) -> bool {
        let registered = self.registered.as_ref();
        registered.is_some_and(|(_, registered)| registered.poll_writable(context).is_ready())
    }

    /// Reads what has arrived. Returns whether there was something.
    fn read(&mut self) -> bool {
        let mut left = READ_MAX;
        self.has_more = false;
        while self.error.is_none() {
            let room = self.parser.room();
            let length = room.len();
            match self.socket.read(room) {
                Ok(0) => self.end(broken(&io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    self.parser.filled(count);
                    self.is_unread = true;
                    left = left.saturating_sub(count);
                    if left == 0 {
                        self.has_more = true;
                        return true;
                    }
                    if count < length && self.socket.is_drained_by_short_read() {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.is_unread,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.end(broken(&error)),
            }
        }
        true
    }

    /// Returns what arrived, if there is something that the engine has not taken in yet.
    pub(super) fn take_unread(&mut self) -> Option<&mut Parser> {
        std::mem::take(&mut self.is_unread).then_some(&mut self.parser)
    }

    /// The server says why the connection cannot be used further. This counts more than how the connection ended.
    pub(super) fn fail(&mut self, error: Error) {
        self.error = Some(error);
    }

    /// The connection cannot be used further. The first reason counts.
    fn end(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.error.is_some()
    }
}
