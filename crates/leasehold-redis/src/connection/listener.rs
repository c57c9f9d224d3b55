use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold::{ClientId, Ear, Ears, Error, Heard, MemberId};

use super::answer::Answer;
use super::command::Command;
use super::failure::Rights;
use crate::hint;
use crate::wire::inbox;

/// Whom a member tells what its server says unasked, over all its connections.
pub(crate) struct Listener {
    member: MemberId,
    /// What its locks have in front of their names.
    prefix: String,
    ears: Ears,
    complained: AtomicBool,
}

impl Listener {
    pub(super) fn new(member: MemberId, prefix: String) -> Self {
        Self {
            member,
            prefix,
            ears: Ears::default(),
            complained: AtomicBool::new(false),
        }
    }

    /// From now on `ear` is told, too.
    pub(crate) fn listen(&self, ear: Ear) {
        self.ears.add(ear);
    }

    /// Says once that waiters of this member are not told when it is their turn.
    pub(crate) fn complain(&self, reason: impl fmt::Display) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(member = %self.member, %reason, "waiters are not notified, and poll instead");
        }
    }

    /// Takes what a server said unasked.
    pub(super) fn pushed(&self, parts: &[Answer]) {
        if let [kind, _channel, Answer::Text(message)] = parts
            && kind.as_text() == Some("message")
            && let Some(hint) = hint::read(&self.prefix, message)
        {
            self.hear(&Heard::Hint(hint));
        }
    }

    /// Whether it concerned anybody is of no use here: the server has counted us among those who
    /// hear.
    fn hear(&self, heard: &Heard) {
        self.ears.tell(heard);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("prefix", &self.prefix)
            .field("ears", &self.ears)
            .finish_non_exhaustive()
    }
}

/// The inboxes that are read on one connection.
pub(super) struct Inboxes {
    listener: Arc<Listener>,
    /// Whether the server speaks the protocol in which it tells something unasked.
    pushes: bool,
    of: Mutex<HashMap<ClientId, Inbox>>,
    /// The user may tell nobody anything.
    mute: AtomicBool,
}

/// How far the server has got with a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inbox {
    /// It may have been asked.
    Asked,
    Open,
    Refused,
}

impl Inboxes {
    pub(super) fn new(listener: Arc<Listener>, pushes: bool) -> Self {
        Self {
            listener,
            pushes,
            of: Mutex::default(),
            mute: AtomicBool::new(false),
        }
    }

    pub(super) fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// What has to be sent so that `client` is told what concerns its waiters; nothing if it is
    /// already, or cannot be.
    pub(super) fn subscription(&self, client: ClientId) -> Option<Command> {
        if !self.pushes {
            self.listener.complain("the server does not speak RESP3");
            return None;
        }
        let mut of = self.of();
        let inbox_of = of.entry(client).or_insert(Inbox::Asked);
        (*inbox_of == Inbox::Asked).then(|| Command::new("SUBSCRIBE").arg(inbox(client)))
    }

    /// Notes what the server `answered` to the subscription of `client`.
    pub(super) fn note_subscribed(&self, client: ClientId, answered: &Answer, user: &str) {
        let inbox = match answered {
            Answer::Refused(refusal) => {
                let error: Error = refusal.to_error(user, Rights("+subscribe"));
                self.listener.complain(error.reason());
                Inbox::Refused
            }
            _ => Inbox::Open,
        };
        self.of().insert(client, inbox);
    }

    /// The user may not tell others that it is their turn: nor can others who are let in as this user.
    pub(super) fn note_mute(&self) {
        self.mute.store(true, Ordering::Relaxed);
    }

    /// Whether `client` is told when it is its turn, as far as is known.
    pub(super) fn tells(&self, client: ClientId) -> bool {
        let is_open = self.of().get(&client) == Some(&Inbox::Open);
        is_open && !self.mute.load(Ordering::Relaxed)
    }

    /// The connection is gone.
    fn close(&self) {
        let hearing = |inbox: &Inbox| *inbox != Inbox::Refused;
        let deaf = self.of().values().any(hearing);
        if deaf {
            self.listener.hear(&Heard::Deaf);
        }
    }

    fn of(&self) -> MutexGuard<'_, HashMap<ClientId, Inbox>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that nobody hears anything any more when it is dropped, however the connection ended.
pub(super) struct EndOf(pub(super) Arc<Inboxes>);

impl Drop for EndOf {
    fn drop(&mut self) {
        self.0.close();
    }
}
