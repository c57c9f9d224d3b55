use std::fmt;

/// The kind of an [`Error`](crate::Error).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value breaks a rule; the message names both. Nothing was sent.
    InvalidInput,
    /// The store cannot do what was asked (shared mode, a network file system, an old server).
    Unsupported,
    /// The servers are not set up for this client: they belong to another quorum, or may evict locks. The message names what
    /// to change.
    Misconfigured,
    /// The store was not prepared for locks, or for another version of this library; the message names what prepares it.
    NotInitialized,
    /// The lock is in use with another number of permits; the message has both.
    PermitsDiffer,
    /// Another owner still held the lock when the wait ended.
    Busy,
    /// Too few members answered to decide; [`Error::members`](crate::Error::members) gives the reason for each.
    NoQuorum,
    /// The member answered but has no vote at present: it may have forgotten leases, or its clock is
    /// wrong.
    Untrusted,
    /// The store, or this one member, did not answer, or refuses requests for a reason other than access: it
    /// loads its data, lacks replicas or memory, or follows another server.
    Unreachable,
    /// The store denied access: wrong password, missing permission, untrusted certificate, or no such database.
    Refused,
    /// The store's answer is invalid.
    InvalidResponse,
    /// The key holds another library's lock, as a different data type.
    IncompatibleKey,
    /// Stored data is damaged.
    Corrupt,
    /// The operating system reported a failure of a file or a disk.
    Io,
    /// The guard is no longer valid.
    Lost,
    /// The resource has seen a greater fence, so a later holder has been there.
    Fenced,
    /// The calling process is a forked child of the process that owns the client or guard.
    Forked,
    /// The client was closed, or its background thread has ended or could not be started.
    Closed,
}

impl ErrorKind {
    /// Returns a name for programs, such as `no_quorum`. It does not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::Unsupported => "unsupported",
            Self::Misconfigured => "misconfigured",
            Self::NotInitialized => "not_initialized",
            Self::PermitsDiffer => "permits_differ",
            Self::Busy => "busy",
            Self::NoQuorum => "no_quorum",
            Self::Untrusted => "untrusted",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::InvalidResponse => "invalid_response",
            Self::IncompatibleKey => "incompatible_key",
            Self::Corrupt => "corrupt",
            Self::Io => "io",
            Self::Lost => "lost",
            Self::Fenced => "fenced",
            Self::Forked => "forked",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InvalidInput => "invalid input",
            Self::Unsupported => "unsupported",
            Self::Misconfigured => "misconfigured",
            Self::NotInitialized => "not initialized",
            Self::PermitsDiffer => "another number of permits is in use",
            Self::Busy => "busy",
            Self::NoQuorum => "no quorum",
            Self::Untrusted => "untrusted",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::InvalidResponse => "invalid response",
            Self::IncompatibleKey => "incompatible key",
            Self::Corrupt => "corrupt",
            Self::Io => "input or output failed",
            Self::Lost => "lost",
            Self::Fenced => "fenced",
            Self::Forked => "forked",
            Self::Closed => "closed",
        })
    }
}

/// What a failed request may have done at the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing: the request was refused or never sent.
    None,
    /// Unknown: no answer came, so the request may or may not have taken effect.
    Unknown,
}
