//! What a failed call means: pure.

use leasehold::{Error, ErrorKind};
use tonic::{Code, Status};

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server does not know the lease, or ended it.
    NoLease,
    /// The lease exists already.
    LeaseExists,
    /// The server no longer accepts the token. The call has no effect.
    LoginExpired,
    /// Anything else.
    Other(Error),
}

impl Failure {
    /// Returns the failure that the answer of a server means.
    pub(crate) fn of(status: &Status) -> Self {
        let text = status.message();
        let is = |part: &str| text.contains(part);
        if is("requested lease not found") {
            return Self::NoLease;
        }
        if is("lease already exists") {
            return Self::LeaseExists;
        }
        if is("invalid auth token") || is("revision of auth store is old") {
            return Self::LoginExpired;
        }
        let text = text.strip_prefix("etcdserver: ").unwrap_or(text);
        let error = match status.code() {
            Code::PermissionDenied => refused(format!(
                "permission denied: the user may not read and write these keys; `leasehold doctor` shows the \
                 command that grants the right (server: {text})"
            )),
            Code::Unauthenticated | Code::InvalidArgument if is("user name is empty") => {
                refused("the server wants a login: write user:password@ in front of the host".into())
            }
            Code::InvalidArgument if is("authentication failed") => {
                refused("the server refuses the user name or the password".into())
            }
            Code::FailedPrecondition if is("authentication is not enabled") => refused(
                "the URL has a login, but the server has no users: remove user:password@, or enable \
                 authentication on the server"
                    .into(),
            ),
            Code::ResourceExhausted if is("database space exceeded") => refused(
                "the database is full (alarm NOSPACE): compact and defragment it, then disarm the alarm with \
                 `etcdctl alarm disarm`"
                    .into(),
            ),
            Code::Unimplemented => Error::new(
                ErrorKind::Unsupported,
                format!("the server does not know a call; etcd 3.4 or later is needed (server: {text})"),
            ),
            Code::Unauthenticated
            | Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::ResourceExhausted
            | Code::NotFound
            | Code::OutOfRange => refused(text.to_owned()),
            // What the server began may still take effect.
            _ => Error::new(ErrorKind::Unreachable, shown(status, text)).with_unknown_effect(),
        };
        Self::Other(error)
    }

    /// Returns the failure as an error, where no special case is expected.
    pub(crate) fn into_error(self) -> Error {
        match self {
            // The caller can begin anew with another lease.
            Self::NoLease => {
                Error::new(ErrorKind::Unreachable, "the lease ended").with_unknown_effect()
            }
            Self::LeaseExists => refused("another client has this lease".into()),
            Self::LoginExpired => refused("the server does not accept its own token".into()),
            Self::Other(error) => error,
        }
    }

    /// The same failure, with the name of the server.
    pub(super) fn at(self, server: &str) -> Self {
        match self {
            Self::Other(error) => Self::Other(error.with_store(server)),
            other => other,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.into_error()
    }
}

fn refused(text: String) -> Error {
    Error::new(ErrorKind::Refused, text)
}

/// Returns `text` with the reasons for `error`, each once. The status of a connection that broke has its reason in the source.
pub(crate) fn shown(error: &dyn std::error::Error, text: &str) -> String {
    let mut shown = text.to_owned();
    let mut source = error.source();
    while let Some(error) = source {
        let reason = error.to_string();
        if !shown.contains(&reason) {
            shown = format!("{shown}: {reason}");
        }
        source = error.source();
    }
    // A server of another kind answers in its own protocol, or ends the connection.
    if ["http2 error", "connection closed"]
        .iter()
        .any(|sign| shown.contains(sign))
    {
        shown += "; is it the port for clients of etcd?";
    }
    shown
}

#[cfg(test)]
mod tests {
    use leasehold::Effect;

    use super::*;

    #[test]
    fn reason_is_shown_once() {
        let error = |text: &str| Error::new(ErrorKind::Unreachable, text);
        let inner = error("tcp connect error").with_source(error("refused"));
        let outer =
            error("transport error").with_source(error("tcp connect error").with_source(inner));
        let text = shown(&outer, "transport error");
        assert_eq!(text, "transport error: tcp connect error: refused");
    }

    #[test]
    fn refused_call_has_no_effect() {
        for (status, part) in [
            (
                Status::permission_denied("etcdserver: permission denied"),
                "leasehold doctor",
            ),
            (
                Status::invalid_argument("etcdserver: user name is empty"),
                "user:password@",
            ),
            (
                Status::resource_exhausted("etcdserver: mvcc: database space exceeded"),
                "alarm disarm",
            ),
        ] {
            let error = Failure::of(&status).into_error();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert_eq!(error.effect(), Effect::None);
            assert!(error.to_string().contains(part), "{error}");
            assert!(!error.is_retryable());
        }
    }

    #[test]
    fn call_without_an_answer_has_unknown_effect() {
        for status in [
            Status::unavailable("etcdserver: no leader"),
            Status::unknown("etcdserver: request timed out"),
            Status::deadline_exceeded("x"),
            Status::cancelled("x"),
        ] {
            let error = Failure::of(&status).into_error();
            assert_eq!(error.effect(), Effect::Unknown);
            assert!(error.is_retryable());
        }
    }

    #[test]
    fn leases_and_tokens_that_are_over_are_told_apart() {
        let of = |text: &str| Failure::of(&Status::not_found(text));
        let gone = of("etcdserver: requested lease not found");
        assert!(matches!(gone, Failure::NoLease));
        let exists = of("etcdserver: lease already exists");
        assert!(matches!(exists, Failure::LeaseExists));
        let expired = of("etcdserver: invalid auth token");
        assert!(matches!(expired, Failure::LoginExpired));
    }
}
