//! Errors of a server as errors of this library.

use leasehold::{Error, ErrorKind};

/// The rights that something needs, in the form of `ACL SETUSER`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights(pub(crate) &'static str);

/// Returns whether the key has a value of another type than the command expects.
pub(crate) fn is_wrong_type(code: &str, message: &str) -> bool {
    // Before Redis 7.0 the error of a script has its code within the text.
    code == "WRONGTYPE" || message.contains("WRONGTYPE")
}

/// Splits the text of an error into code and message. Before Redis 7.0 some errors have no code.
pub(super) fn split_error(text: &str) -> (&str, &str) {
    let is_code = |code: &str| code.bytes().all(|byte| byte.is_ascii_uppercase());
    match text.split_once(' ') {
        Some((code, message)) if is_code(code) => (code, message),
        _ => ("ERR", text),
    }
}

/// Returns the error of a server for `user`, whose request needs `rights`.
///
/// Only a lack of access is [`ErrorKind::Refused`], which ends a wait. A server that refuses requests for another
/// reason, known or not, is [`ErrorKind::Unreachable`]: it may be ready later. It is "not ready" only for known
/// reasons: the answer may be that of a proxy without a server.
pub(crate) fn refused(code: &str, message: &str, user: &str, rights: Rights) -> Error {
    let said = format!("{code} {message}");
    match code {
        "NOPERM" => missing_right(message, user, rights),
        "ERR" if is_right_of_script(message) => missing_right(message, user, rights),
        "NOAUTH" => Error::new(
            ErrorKind::Refused,
            "the server asks for a password, and the store URL has none",
        ),
        "WRONGPASS" => Error::new(
            ErrorKind::Refused,
            format!("the server does not accept the password of the user {user:?}"),
        ),
        "DENIED" => Error::new(ErrorKind::Refused, format!("the server refused: {said}")),
        "ERR" if is_access(message) => {
            Error::new(ErrorKind::Refused, format!("the server refused: {said}"))
        }
        _ if is_of_replica(code, message) => not_ready(READ_ONLY),
        _ if NOT_READY.contains(&code) => not_ready(format!("not ready: {said}")),
        "ERR" if message.starts_with("max number of clients") => not_ready(said),
        "MOVED" | "ASK" | "CROSSSLOT" => Error::new(
            ErrorKind::Unsupported,
            format!("the server is a node of a cluster, not a plain member: {said}"),
        ),
        "ERR" if lacks_command(message) => Error::new(
            ErrorKind::Unsupported,
            format!("the server lacks a command: {message}"),
        ),
        _ if is_wrong_type(code, message) => Error::new(
            ErrorKind::Corrupt,
            "a record of this lock (leasehold:fence:…, :readers:…, :slots:…, :queue:…, :record:…, \
             :version:…, :broken:…, or leasehold:present) has another type than this library \
             writes: delete it",
        ),
        // What a module or a proxy may add. A proxy may have passed the request on.
        _ => Error::new(
            ErrorKind::Unreachable,
            format!("the server refused: {said}"),
        )
        .with_unknown_effect(),
    }
}

fn not_ready(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unreachable, message).with_not_ready()
}

/// The codes of a server that loads, follows, recovers, or is full. It executed no part of a plain command.
const NOT_READY: [&str; 8] = [
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "NOREPLICAS",
    "OOM",
    "TRYAGAIN",
];

/// Returns whether `error` is that of a replica that refused to write. A primary that was demoted may keep its
/// connections.
pub(crate) fn is_read_only(error: &Error) -> bool {
    error.reason() == READ_ONLY
}

const READ_ONLY: &str =
    "not ready: the server is a read-only replica, and locks live on primaries alone";

/// Returns whether a replica refused to write.
fn is_of_replica(code: &str, message: &str) -> bool {
    // Before Redis 7.0 the error of a script has its code within the text.
    code == "READONLY" || code == "ERR" && message.contains("READONLY")
}

/// Returns whether a server refuses a password or a database without a code of its own.
fn is_access(message: &str) -> bool {
    let message = message.to_lowercase();
    ["db index", "without any password", "no password is set"]
        .iter()
        .any(|part| message.contains(part))
}

fn lacks_command(message: &str) -> bool {
    let message = message.to_lowercase();
    message.starts_with("unknown command") || message.contains("unknown redis command")
}

/// Redis 7.0 names neither the command nor the key if a script lacks a right.
fn is_right_of_script(message: &str) -> bool {
    message.contains("The user executing the script") || message.contains("ACL failure in script")
}

fn missing_right(message: &str, user: &str, Rights(rights): Rights) -> Error {
    let command = message
        .split_once("run the '")
        .and_then(|(_, rest)| rest.split_once('\''));
    let text = match command {
        Some((command, _)) => format!("the user {user:?} lacks the right +{command}"),
        None if message.contains("channel") => {
            format!("the user {user:?} needs the rule &leasehold:inbox:*")
        }
        None if message.contains("access") => format!(
            "the user {user:?} may not use the keys of this lock: it needs ~ rules for the lock \
             key and for leasehold:*"
        ),
        None => format!("the user {user:?} lacks one of the rights {rights}"),
    };
    Error::new(ErrorKind::Refused, text)
}

/// Returns the error for an answer of an unexpected form.
pub(crate) fn invalid_response(what: &str) -> Error {
    let message = format!("the answer to {what} makes no sense");
    Error::new(ErrorKind::InvalidResponse, message).with_unknown_effect()
}

#[cfg(test)]
mod tests {
    use leasehold::Effect;

    use super::*;

    fn error(code: &str, message: &str) -> Error {
        refused(code, message, "ann", Rights("+get +del"))
    }

    #[test]
    fn missing_right_is_named() {
        for (code, message, named) in [
            (
                "NOPERM",
                "this user has no permissions to run the 'client|id' command",
                "the user \"ann\" lacks the right +client|id",
            ),
            (
                "ERR",
                "The user executing the script can't run this command or subcommand",
                "the user \"ann\" lacks one of the rights +get +del",
            ),
            (
                "NOPERM",
                "The user executing the script can't access at least one of the keys mentioned",
                "the user \"ann\" may not use the keys of this lock: it needs ~ rules for the \
                 lock key and for leasehold:*",
            ),
            (
                "NOPERM",
                "this user has no permissions to access one of the channels used as arguments",
                "the user \"ann\" needs the rule &leasehold:inbox:*",
            ),
        ] {
            assert_eq!(error(code, message).to_string(), named);
        }
    }

    #[test]
    fn each_code_has_its_kind() {
        for (code, message, kind) in [
            ("NOAUTH", "Authentication required.", ErrorKind::Refused),
            ("WRONGPASS", "invalid password", ErrorKind::Refused),
            ("DENIED", "protected mode", ErrorKind::Refused),
            ("ERR", "DB index is out of range", ErrorKind::Refused),
            ("READONLY", "You can't write", ErrorKind::Unreachable),
            (
                "ERR",
                "Error running script: @user_script: 4: -READONLY You can't",
                ErrorKind::Unreachable,
            ),
            ("OOM", "command not allowed", ErrorKind::Unreachable),
            ("MISCONF", "stop-writes", ErrorKind::Unreachable),
            ("NOREPLICAS", "Not enough", ErrorKind::Unreachable),
            ("ERR", "no upstream host", ErrorKind::Unreachable),
            ("LOADING", "Redis is loading", ErrorKind::Unreachable),
            ("BUSY", "Redis is busy", ErrorKind::Unreachable),
            (
                "ERR",
                "max number of clients reached",
                ErrorKind::Unreachable,
            ),
            ("MOVED", "3999 127.0.0.1:6381", ErrorKind::Unsupported),
            ("ERR", "unknown command 'EVALSHA'", ErrorKind::Unsupported),
            ("ERR", "Unknown command 'EVALSHA'", ErrorKind::Unsupported),
            ("WRONGTYPE", "Operation against a key", ErrorKind::Corrupt),
            (
                "ERR",
                "@user_script:9: WRONGTYPE Operation",
                ErrorKind::Corrupt,
            ),
        ] {
            assert_eq!(error(code, message).kind(), kind, "{code} {message}");
        }
    }

    #[test]
    fn unknown_error_may_have_had_an_effect() {
        assert_eq!(error("OOM", "not allowed").effect(), Effect::None);
        assert_eq!(error("ERR", "timed out").effect(), Effect::Unknown);
    }

    #[test]
    fn proxy_without_a_server_is_not_a_server_that_is_not_ready() {
        for code in NOT_READY {
            assert!(error(code, "later").is_not_ready(), "{code}");
        }
        assert!(error("READONLY", "You can't write").is_not_ready());
        assert!(error("ERR", "max number of clients reached").is_not_ready());
        assert!(!error("ERR", "no upstream host").is_not_ready());
        assert!(!error("NOAUTH", "Authentication required.").is_not_ready());
    }

    #[test]
    fn errors_without_a_code_are_split() {
        assert_eq!(split_error("OOM not allowed"), ("OOM", "not allowed"));
        let old = "Error running script: WRONGTYPE Operation";
        assert_eq!(split_error(old), ("ERR", old));
    }
}
