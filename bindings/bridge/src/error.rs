//! Errors as plain values, from which each language makes its exception.

use leasehold::{Effect, Error, ErrorKind, LostReason};
use serde::Serialize;

/// An error of the core.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorFields {
    /// The kind, for programs: `busy`, `lost`, `no_quorum`.
    pub kind: &'static str,
    /// The text, for people.
    pub text: String,
    /// The name of the lock.
    pub name: Option<String>,
    /// The store, without credentials.
    pub store: Option<String>,
    /// Why the lock was lost.
    pub reason: Option<&'static str>,
    /// The identity of the client that holds the lock.
    pub holder: Option<String>,
    /// The members of a quorum that failed, and their errors.
    pub members: Vec<(String, String)>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether the call may have taken effect.
    pub effect_unknown: bool,
}

impl From<&Error> for ErrorFields {
    fn from(error: &Error) -> Self {
        let members = error.members().iter();
        Self {
            kind: error.kind().name(),
            text: error.to_string(),
            name: error.key().map(|key| key.as_str().to_owned()),
            store: error.store().map(str::to_owned),
            reason: error.lost_reason().map(LostReason::name),
            holder: error.holder().map(|holder| holder.to_string()),
            members: members
                .map(|member| (member.id.to_string(), member.error.to_string()))
                .collect(),
            retryable: error.is_retryable(),
            effect_unknown: error.effect() == Effect::Unknown,
        }
    }
}

/// Returns the error of a call on a guard that was released before.
pub fn released_before(name: &str) -> Error {
    Error::new(
        ErrorKind::Closed,
        format!("the guard of {name:?} was released before"),
    )
}
