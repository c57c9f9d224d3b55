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

/// What the answer of a server means for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    NoLease,
    LeaseExists,
    LoginExpired,
    /// The call had no effect, and has none if it is repeated.
    Refused,
    /// The server lacks the call.
    Unsupported,
    /// The call had no effect. The server answers, and will carry it out later: a wait goes on.
    NotReady,
    /// What the server began may still take effect. Another server may be better.
    Lost,
}
use Meaning::{LeaseExists, LoginExpired, Lost, NoLease, NotReady, Refused, Unsupported};

/// What the answers of etcd mean: the code, a part of the text, the meaning, and what is said to people in front of the text. The
/// first line that fits counts. The codes of a text differ between versions, so most lines have none.
const MEANINGS: &[(Option<Code>, &str, Meaning, &str)] = &[
    (None, "requested lease not found", NoLease, ""),
    (None, "lease already exists", LeaseExists, ""),
    (None, "invalid auth token", LoginExpired, ""),
    (None, "revision of auth store is old", LoginExpired, ""),
    (
        None,
        "database space exceeded",
        NotReady,
        "the database is full (alarm NOSPACE): compact and defragment it, then disarm the alarm with `etcdctl alarm \
         disarm`",
    ),
    (
        None,
        "corrupt cluster",
        NotReady,
        "the members disagree about their data (alarm CORRUPT): replace the corrupt member, then disarm the alarm with \
         `etcdctl alarm disarm`",
    ),
    (
        None,
        "too many requests",
        NotReady,
        "the server is overloaded",
    ),
    (
        None,
        "not capable",
        NotReady,
        "the ensemble is just starting",
    ),
    (None, "not leader", Lost, ""),
    (None, "no leader", Lost, ""),
    (
        None,
        "user name is empty",
        Refused,
        "the server wants a login: write user:password@ in front of the host",
    ),
    (
        None,
        "authentication failed",
        Refused,
        "the server refuses the user name or the password",
    ),
    (
        None,
        "authentication is not enabled",
        Refused,
        "the URL has a login, but the server has no users: remove user:password@, or enable authentication on the server",
    ),
    (None, "larger than max", Refused, ""),
    (
        Some(Code::PermissionDenied),
        "",
        Refused,
        "permission denied: the user may not read and write these keys; `leasehold doctor` shows the command that grants \
         the right",
    ),
    (
        Some(Code::Unimplemented),
        "",
        Unsupported,
        "the server does not know a call; etcd 3.4 or later is needed",
    ),
    (Some(Code::ResourceExhausted), "", NotReady, ""),
    (Some(Code::Unauthenticated), "", Refused, ""),
    (Some(Code::InvalidArgument), "", Refused, ""),
    (Some(Code::FailedPrecondition), "", Refused, ""),
    (Some(Code::NotFound), "", Refused, ""),
    (Some(Code::OutOfRange), "", Refused, ""),
    (None, "", Lost, ""),
];

/// Returns the line of the table that fits.
fn meaning(code: Code, text: &str) -> (Meaning, &'static str) {
    let fits = |line: &&(Option<Code>, &str, Meaning, &str)| {
        line.0.is_none_or(|of| of == code) && text.contains(line.1)
    };
    let line = MEANINGS.iter().find(fits);
    line.map_or((Lost, ""), |line| (line.2, line.3))
}

impl Failure {
    /// Returns the failure that the answer of a server means.
    pub(crate) fn of(status: &Status) -> Self {
        let text = status.message();
        let (meaning, advice) = meaning(status.code(), text);
        let text = text.strip_prefix("etcdserver: ").unwrap_or(text);
        let said = match (meaning, advice) {
            (Lost, _) => shown(status, text),
            (_, "") => text.to_owned(),
            _ => format!("{advice} (server: {text})"),
        };
        Self::Other(match meaning {
            NoLease => return Self::NoLease,
            LeaseExists => return Self::LeaseExists,
            LoginExpired => return Self::LoginExpired,
            Refused => refused(said),
            Unsupported => Error::new(ErrorKind::Unsupported, said),
            NotReady => Error::new(ErrorKind::Unreachable, said).with_not_ready(),
            Lost => Error::new(ErrorKind::Unreachable, said).with_unknown_effect(),
        })
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

    /// The answers of etcd 3.4 to 3.6, from its `rpctypes`, and some of connections and proxies.
    const ANSWERS: &[(Code, &str, Meaning)] = &[
        (
            Code::NotFound,
            "etcdserver: requested lease not found",
            NoLease,
        ),
        (
            Code::FailedPrecondition,
            "etcdserver: lease already exists",
            LeaseExists,
        ),
        (
            Code::Unauthenticated,
            "etcdserver: invalid auth token",
            LoginExpired,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: revision of auth store is old",
            LoginExpired,
        ),
        (
            Code::PermissionDenied,
            "etcdserver: permission denied",
            Refused,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: user name is empty",
            Refused,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: authentication failed, invalid user ID or password",
            Refused,
        ),
        (
            Code::FailedPrecondition,
            "etcdserver: authentication is not enabled",
            Refused,
        ),
        (
            Code::FailedPrecondition,
            "etcdserver: user name not found",
            Refused,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: invalid auth management",
            Refused,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: request is too large",
            Refused,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: too many operations in txn request",
            Refused,
        ),
        (
            Code::InvalidArgument,
            "etcdserver: duplicate key given in txn request",
            Refused,
        ),
        (Code::OutOfRange, "etcdserver: too large lease TTL", Refused),
        (
            Code::OutOfRange,
            "etcdserver: mvcc: required revision has been compacted",
            Refused,
        ),
        (
            Code::ResourceExhausted,
            "grpc: received message larger than max (2097260 vs. 2097152)",
            Refused,
        ),
        (
            Code::Unimplemented,
            "unknown service etcdserverpb.Lease",
            Unsupported,
        ),
        (
            Code::ResourceExhausted,
            "etcdserver: mvcc: database space exceeded",
            NotReady,
        ),
        (
            Code::ResourceExhausted,
            "etcdserver: too many requests",
            NotReady,
        ),
        (Code::ResourceExhausted, "quota of the proxy", NotReady),
        (Code::DataLoss, "etcdserver: corrupt cluster", NotReady),
        (
            Code::FailedPrecondition,
            "etcdserver: not capable",
            NotReady,
        ),
        (Code::Unavailable, "etcdserver: not capable", NotReady),
        (Code::FailedPrecondition, "etcdserver: not leader", Lost),
        (Code::Unavailable, "etcdserver: no leader", Lost),
        (Code::Unavailable, "etcdserver: leader changed", Lost),
        (Code::Unavailable, "etcdserver: server stopped", Lost),
        (Code::Unavailable, "etcdserver: request timed out", Lost),
        (
            Code::Unavailable,
            "etcdserver: request timed out, possibly due to previous leader failure",
            Lost,
        ),
        (
            Code::Unavailable,
            "etcdserver: request timed out, possibly due to connection lost",
            Lost,
        ),
        (
            Code::Unavailable,
            "etcdserver: request timed out, waiting for the applied index took too long",
            Lost,
        ),
        (Code::Unavailable, "etcdserver: unhealthy cluster", Lost),
        (
            Code::Unavailable,
            "etcdserver: rpc not supported for learner",
            Lost,
        ),
        (Code::Unavailable, "the connection was closed", Lost),
        (Code::Unknown, "raft: stopped", Lost),
        (Code::Unknown, "raft proposal dropped", Lost),
        (Code::Unknown, "context deadline exceeded", Lost),
        (Code::DeadlineExceeded, "context deadline exceeded", Lost),
        (Code::Cancelled, "context canceled", Lost),
        (Code::Internal, "h2 protocol error", Lost),
        (Code::Aborted, "x", Lost),
    ];

    #[test]
    fn each_answer_is_refused_not_ready_or_lost() {
        for (code, text, expected) in ANSWERS {
            let failure = Failure::of(&Status::new(*code, *text));
            let meaning = match &failure {
                Failure::NoLease => NoLease,
                Failure::LeaseExists => LeaseExists,
                Failure::LoginExpired => LoginExpired,
                Failure::Other(error) => match error.kind() {
                    ErrorKind::Refused => Refused,
                    ErrorKind::Unsupported => Unsupported,
                    _ if error.is_not_ready() => NotReady,
                    _ => Lost,
                },
            };
            assert_eq!(meaning, *expected, "{text}");
            if let Failure::Other(error) = failure {
                let waits = matches!(expected, NotReady | Lost);
                assert_eq!(error.is_retryable(), waits, "{text}");
                let is_known = *expected != Lost;
                assert_eq!(error.effect() == Effect::None, is_known, "{text}");
            }
        }
    }

    #[test]
    fn failure_names_what_helps() {
        for (text, part) in [
            ("etcdserver: user name is empty", "user:password@"),
            ("etcdserver: mvcc: database space exceeded", "alarm disarm"),
            ("etcdserver: corrupt cluster", "alarm disarm"),
        ] {
            let error = Failure::of(&Status::unknown(text)).into_error();
            assert!(error.to_string().contains(part), "{error}");
        }
        let denied = Status::permission_denied("etcdserver: permission denied");
        let denied = Failure::of(&denied).into_error().to_string();
        assert!(denied.contains("leasehold doctor"), "{denied}");
    }
}
