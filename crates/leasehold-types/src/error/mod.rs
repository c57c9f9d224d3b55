mod kind;
mod lost_reason;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{ClientId, Fence, Key, MemberId, exact_span, rough_span, without_secrets};

pub use kind::{Effect, ErrorKind};
pub use lost_reason::LostReason;

/// The reason for a failed call.
///
/// `Display` prints one line of text without credentials. Programs use [`kind`](Self::kind) and the
/// predicates; `manual::errors` says what to do about each kind. A held lock is no error for `Lock::try_acquire`; it is one only if a
/// wait ran out.
#[derive(Clone)]
pub struct Error(Arc<ErrorInner>);

#[derive(Clone)]
struct ErrorInner {
    kind: ErrorKind,
    effect: Effect,
    is_not_ready: bool,
    message: String,
    store: Option<String>,
    key: Option<Key>,
    members: Vec<MemberFailure>,
    eligible_after: Option<Duration>,
    ttl_bounds: Option<(Duration, Duration)>,
    lost_reason: Option<LostReason>,
    holder: Option<ClientId>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Returns an error of `kind`. `message` is one line, names values and rules, and contains no
    /// credential.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(ErrorInner {
            kind,
            effect: Effect::None,
            is_not_ready: false,
            message: message.into(),
            store: None,
            key: None,
            members: Vec::new(),
            eligible_after: None,
            ttl_bounds: None,
            lost_reason: None,
            holder: None,
            source: None,
        }))
    }

    /// Returns the error of a store URL that breaks `rule`; `expected` is the required form. It shows nothing secret of the
    /// URL, and the rule must not either.
    pub fn invalid_url(url: &str, rule: &str, expected: &str) -> Self {
        let shown = without_secrets(url);
        let message = format!("store URL {shown:?}: {rule}; expected {expected}");
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Returns the error of a server that could not be reached, so nothing was sent.
    pub fn no_connection(reason: impl StdError + Send + Sync + 'static) -> Self {
        let message = format!("no connection: {reason}");
        Self::new(ErrorKind::Unreachable, message).with_source(reason)
    }

    /// Returns the error of a server that could not be reached within `limit`.
    pub fn no_connection_within(limit: Duration) -> Self {
        let message = format!("no connection within {}", exact_span(limit));
        Self::new(ErrorKind::Unreachable, message)
    }

    /// Returns the error of a server that did not answer within `limit`. The caller knows whether it was asked for an effect.
    pub fn no_answer_within(limit: Duration) -> Self {
        let message = format!("no answer within {}", exact_span(limit));
        Self::new(ErrorKind::Unreachable, message)
    }

    /// Returns the error of a resource that refuses `fence` because it has seen `greatest`, if that is
    /// known.
    pub fn fenced(fence: Fence, greatest: impl Into<Option<Fence>>) -> Self {
        let seen = match greatest.into() {
            Some(greatest) => format!("the resource has seen {greatest}"),
            None => "the resource has seen a greater one".into(),
        };
        let message = format!("fence {fence} comes too late: {seen}, of a later holder");
        Self::new(ErrorKind::Fenced, message)
    }

    /// Returns the error of a lock that is in use with `held` permits, and was asked for with `wanted`.
    pub fn permits_differ(held: impl fmt::Display, wanted: impl fmt::Display) -> Self {
        let message = format!("the lock is in use with {held} permits, not {wanted}");
        Self::new(ErrorKind::PermitsDiffer, message)
    }

    /// Returns the error of a guard that is no longer valid, for this reason.
    pub fn lost(reason: LostReason) -> Self {
        if reason == LostReason::Forked {
            let text = "this process is a forked child: open a client of its own after the fork";
            return Self::new(ErrorKind::Forked, text);
        }
        let error = Self::new(ErrorKind::Lost, format!("lost: {reason}"));
        error.edit(|inner| inner.lost_reason = Some(reason))
    }

    /// The same error, for a request that may have had an effect.
    #[must_use]
    pub fn with_unknown_effect(self) -> Self {
        self.edit(|inner| inner.effect = Effect::Unknown)
    }

    /// The same error, for a request that had no effect.
    #[must_use]
    pub fn without_effect(self) -> Self {
        self.edit(|inner| inner.effect = Effect::None)
    }

    /// The same error, of a store that answered that it is not ready for requests.
    #[must_use]
    pub fn with_not_ready(self) -> Self {
        self.edit(|inner| inner.is_not_ready = true)
    }

    /// The same error, for a lock that this client holds.
    #[must_use]
    pub fn with_holder(self, holder: Option<ClientId>) -> Self {
        self.edit(|inner| inner.holder = holder)
    }

    /// The same error, naming the store (without credentials) unless it names one already.
    #[must_use]
    pub fn with_store(self, store: impl Into<String>) -> Self {
        self.edit(|inner| {
            inner.store.get_or_insert(store.into());
        })
    }

    /// The same error, naming the lock.
    #[must_use]
    pub fn with_key(self, key: &Key) -> Self {
        self.edit(|inner| inner.key = Some(key.clone()))
    }

    /// The same error, with the failure of each member.
    #[must_use]
    pub fn with_members(self, members: Vec<MemberFailure>) -> Self {
        self.edit(|inner| inner.members = members)
    }

    /// The same error, which time alone resolves, after this span.
    #[must_use]
    pub fn with_eligible_after(self, after: Option<Duration>) -> Self {
        self.edit(|inner| inner.eligible_after = after)
    }

    /// The same error, caused by `source`.
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.edit(|inner| inner.source = Some(Arc::new(source)))
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what the request may have done.
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// Returns whether the store answered that it is not ready for requests: it loads its data, is full, or lacks
    /// replicas. Its address is right, so a wait without a limit continues.
    pub fn is_not_ready(&self) -> bool {
        self.0.is_not_ready
    }

    /// Returns what went wrong, without the lock and the store that it happened to.
    pub fn reason(&self) -> &str {
        &self.0.message
    }

    /// Returns the store that failed, without credentials.
    pub fn store(&self) -> Option<&str> {
        self.0.store.as_deref()
    }

    /// Returns the lock that the call was for.
    pub fn key(&self) -> Option<&Key> {
        self.0.key.as_ref()
    }

    /// Returns after how long enough members have a vote again, if only time is missing.
    pub fn eligible_after(&self) -> Option<Duration> {
        self.0.eligible_after
    }

    /// The same error, for a TTL that is shorter or longer than the store allows.
    #[must_use]
    pub fn with_ttl_bounds(self, least: Duration, most: Duration) -> Self {
        self.edit(|inner| inner.ttl_bounds = Some((least, most)))
    }

    /// Returns the shortest and the longest TTL that the store allows, if the TTL was out of these bounds.
    pub fn ttl_bounds(&self) -> Option<(Duration, Duration)> {
        self.0.ttl_bounds
    }

    /// Returns the members that failed, each with its own error. Empty unless the store is a quorum.
    pub fn members(&self) -> &[MemberFailure] {
        &self.0.members
    }

    /// Returns whether the wait ended while another owner held the lock.
    pub fn is_busy(&self) -> bool {
        self.0.kind == ErrorKind::Busy
    }

    /// Returns whether the guard is no longer valid.
    pub fn is_lost(&self) -> bool {
        self.0.kind == ErrorKind::Lost
    }

    /// Returns why the guard is no longer valid, if that is the error.
    pub fn lost_reason(&self) -> Option<LostReason> {
        self.0.lost_reason
    }

    /// Returns the client that holds the lock, if the lock is busy and the store named its holder. `Client::holders` returns
    /// its program, process, and machine.
    pub fn holder(&self) -> Option<ClientId> {
        self.0.holder
    }

    /// Returns whether the resource refused the fence, because a later holder has been there.
    pub fn is_fenced(&self) -> bool {
        self.0.kind == ErrorKind::Fenced
    }

    /// Returns whether the store, or too many of its members, could not be asked.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::NoQuorum
                | ErrorKind::Untrusted
                | ErrorKind::Unreachable
                | ErrorKind::InvalidResponse
        )
    }

    /// Returns whether the same call may succeed later with the same arguments and setup.
    pub fn is_retryable(&self) -> bool {
        self.is_busy() || self.is_unreachable()
    }

    fn edit(mut self, change: impl FnOnce(&mut ErrorInner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.0.key {
            write!(f, "lock {:?}: ", key.as_str())?;
        }
        // The members are named with what each of them lacks.
        if let Some(store) = self.store().filter(|_| self.members().is_empty()) {
            write!(f, "{store}: ")?;
        }
        f.write_str(&self.0.message)?;
        for failure in MemberFailure::grouped(&self.0.members) {
            write!(f, "; {failure}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.debug_struct("Error")
            .field("kind", &inner.kind)
            .field("effect", &inner.effect)
            .field("is_not_ready", &inner.is_not_ready)
            .field("message", &inner.message)
            .field("store", &inner.store)
            .field("key", &inner.key)
            .field("members", &inner.members)
            .field("eligible_after", &inner.eligible_after)
            .field("lost_reason", &inner.lost_reason)
            .field("source", &inner.source)
            .finish()
    }
}

impl StdError for Error {
    /// Returns the cause, or what is behind it if the message has the text of the cause: a chain would print it twice.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let cause: &(dyn StdError + 'static) = &**self.0.source.as_ref()?;
        match self.0.message.contains(&cause.to_string()) {
            true => cause.source(),
            false => Some(cause),
        }
    }
}

/// Why a request failed at one member, or why the member has no vote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberFailure {
    /// The member.
    pub id: MemberId,
    /// What went wrong there.
    pub error: Error,
    /// After how long the member is eligible again, if that is known.
    pub eligible_after: Option<Duration>,
}

impl MemberFailure {
    /// Returns the failure of `id` with `error`.
    pub fn new(id: MemberId, error: Error) -> Self {
        Self {
            id,
            error,
            eligible_after: None,
        }
    }
}

impl MemberFailure {
    /// Returns one text for each reason, with all members that have it: `a, b: connection refused`. The order
    /// is that of the first member with the reason.
    pub fn grouped(failures: &[Self]) -> Vec<String> {
        let mut groups: Vec<(String, String)> = Vec::new();
        for failure in failures {
            let (reason, id) = (failure.reason(), failure.id.to_string());
            match groups.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, ids)) => *ids += &format!(", {id}"),
                None => groups.push((reason, id)),
            }
        }
        let texts = groups.into_iter();
        texts
            .map(|(reason, ids)| format!("{ids}: {reason}"))
            .collect()
    }

    /// Why, without the member, and for how long.
    fn reason(&self) -> String {
        let text = self.error.to_string();
        // An error may name the member as its store.
        let named = format!("{}: ", self.id);
        let text = text.strip_prefix(&named).unwrap_or(&text);
        match self.eligible_after {
            Some(span) => format!("{text} (no vote for {})", rough_span(span)),
            None => text.to_owned(),
        }
    }
}

impl fmt::Display for MemberFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_several_members_is_said_once() {
        let failure = |id: &str, reason: &str| {
            let error = Error::new(ErrorKind::Unreachable, reason).with_store(id);
            MemberFailure::new(MemberId::new(id), error)
        };
        let members = vec![
            failure("b", "connection refused"),
            failure("a", "no answer yet"),
            failure("c", "connection refused"),
        ];
        let error = Error::new(ErrorKind::NoQuorum, "no quorum").with_members(members);
        assert_eq!(
            error.to_string(),
            "no quorum; b, c: connection refused; a: no answer yet"
        );
    }

    #[test]
    fn chain_of_causes_says_nothing_twice() {
        let cause = || std::io::Error::other("connection refused");
        let named = Error::new(ErrorKind::Io, "no connection: connection refused");
        assert!(named.with_source(cause()).source().is_none());
        let silent = Error::new(ErrorKind::Io, "cannot read").with_source(cause());
        let text = silent.source().unwrap().to_string();
        assert_eq!(text, "connection refused");
    }

    #[test]
    fn one_line_names_lock_store_and_reason() {
        let error = Error::new(ErrorKind::Unreachable, "connection refused")
            .with_store("127.0.0.1:6379")
            .with_store("never replaces the first")
            .with_key(&Key::new("deploy").unwrap())
            .with_unknown_effect();
        assert_eq!(
            error.to_string(),
            r#"lock "deploy": 127.0.0.1:6379: connection refused"#
        );
        assert_eq!(error.effect(), Effect::Unknown);
        assert!(error.is_retryable() && error.is_unreachable() && !error.is_busy());
    }
}
