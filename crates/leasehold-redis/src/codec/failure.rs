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
        "READONLY" => Error::new(
            ErrorKind::Refused,
            "the server is a read-only replica: locks live on primaries alone",
        ),
        "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" => {
            Error::new(ErrorKind::Unreachable, format!("not ready: {said}"))
        }
        "ERR" if message.starts_with("max number of clients") => {
            Error::new(ErrorKind::Unreachable, said)
        }
        "MOVED" | "ASK" | "CROSSSLOT" => Error::new(
            ErrorKind::Unsupported,
            format!("the server is a node of a cluster, not a plain member: {said}"),
        ),
        "ERR" if message.to_lowercase().starts_with("unknown command") => Error::new(
            ErrorKind::Unsupported,
            format!("the server lacks a command: {message}"),
        ),
        _ if is_wrong_type(code, message) => Error::new(
            ErrorKind::Corrupt,
            "a record of this lock (leasehold:fence:…, :readers:…, :slots:…, :queue:…, :record:…, \
             :version:…, :broken:…, or leasehold:present) has another type than this library \
             writes: delete it",
        ),
        // OOM, MISCONF, NOREPLICAS, and what a module or a proxy may add.
        _ => Error::new(ErrorKind::Refused, format!("the server refused: {said}")),
    }
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
            ("READONLY", "You can't write", ErrorKind::Refused),
            ("OOM", "command not allowed", ErrorKind::Refused),
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
    fn errors_without_a_code_are_split() {
        assert_eq!(split_error("OOM not allowed"), ("OOM", "not allowed"));
        let old = "Error running script: WRONGTYPE Operation";
        assert_eq!(split_error(old), ("ERR", old));
    }
}
