//! What arrives on the connections of a driver, and when the kernel takes more bytes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use leasehold::Error;
use leasehold::store::SocketReader;
use leasehold_quorum::{MemberIndex, PerMember};

use crate::connection::readiness::Readiness;
use crate::connection::socket::{Socket, broken};
use crate::resp::Parser;

/// What arrives from all members.
///
/// A reader alone registers a socket at its runtime, behind the mutex of the member. A former reader may still hold that mutex for a
/// moment, so a registration of a later reader stays. Every thread may read a socket without waiting, behind the same mutex. The
/// bytes stay in the parser until the thread that has the driver's state takes them.
///
/// A member is marked as blocked before the reader is woken, which looks at the mark behind the mutex of the member.
#[derive(Debug)]
pub(super) struct Reading {
    members: PerMember<MemberReading>,
    /// Which task waits for it.
    pub(super) reader: SocketReader,
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
            reader: SocketReader::default(),
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
        self.reader.wake();
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
        self.reader.wake();
    }

    /// Reads all that has arrived. Otherwise the reader is woken when something does, or when the kernel takes more bytes.
    /// Returns whether there is something to do, or `None` if another task is the reader.
    pub(super) fn poll(&self, reader: u64, context: &mut Context<'_>) -> Option<bool> {
        if !self.reader.register(reader, context.waker()) {
            return None;
        }
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
