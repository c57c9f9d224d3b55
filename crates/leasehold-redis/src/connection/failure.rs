use std::io;

use leasehold::{Error, ErrorKind};

use super::answer::Refusal;
use super::reply::{REPLY_MAX, Unread};

/// What a user must be allowed for something, as `ACL SETUSER` says it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights(pub(crate) &'static str);

impl Refusal {
    /// The refusal as an error for `user`, who asked for something that needs `rights`.
    pub(crate) fn to_error(&self, user: &str, rights: Rights) -> Error {
        let Self { code, text } = self;
        let said = format!("{code} {text}");
        match code.as_str() {
            "NOPERM" => refused_right(text, user, rights),
            "ERR" if is_right_of_script(text) => refused_right(text, user, rights),
            "NOAUTH" => Error::new(
                ErrorKind::Refused,
                "the server asks for a password, and the store URL has none",
            ),
            "WRONGPASS" => wrong_password(user),
            "READONLY" => Error::new(
                ErrorKind::Refused,
                "the server is a read-only replica: locks live on primaries alone",
            ),
            "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" => {
                Error::new(ErrorKind::Unreachable, format!("not ready: {said}"))
            }
            "ERR" if text.starts_with("max number of clients") => {
                Error::new(ErrorKind::Unreachable, said)
            }
            "MOVED" | "ASK" | "CROSSSLOT" => Error::new(
                ErrorKind::Unsupported,
                format!("the server is a node of a cluster, not a plain member: {said}"),
            ),
            "ERR" if text.starts_with("unknown command") => Error::new(
                ErrorKind::Unsupported,
                format!("the server lacks a command: {text}"),
            ),
            _ if self.is_wrong_type() => Error::new(
                ErrorKind::Corrupt,
                "one of this lock's records (leasehold:fence:…, :readers:…, :slots:…, :queue:…, \
                 :offered:…, :record:…, :stamp:…, :broken:…) is not of the type this library writes: \
                 delete it",
            ),
            // OOM, MISCONF, NOREPLICAS, and whatever a module or a proxy may add.
            _ => Error::new(ErrorKind::Refused, format!("the server refused: {said}")),
        }
    }
}

/// Redis 7.0 names neither the command nor the key when a script runs into a missing right.
fn is_right_of_script(text: &str) -> bool {
    text.contains("The user executing the script") || text.contains("ACL failure in script")
}

fn refused_right(text: &str, user: &str, rights: Rights) -> Error {
    let command = text
        .split_once("run the '")
        .and_then(|(_, rest)| rest.split_once('\''));
    let Rights(rights) = rights;
    let message = match command {
        Some((command, _)) => format!("the user {user:?} lacks the right +{command}"),
        None if text.contains("channel") => {
            format!("the user {user:?} needs the rule &leasehold:inbox:*")
        }
        None if text.contains("access") => format!(
            "the user {user:?} may not use the keys of this lock: it needs ~ rules for the lock \
             key and for leasehold:*"
        ),
        None => format!("the user {user:?} lacks one of the rights {rights}"),
    };
    Error::new(ErrorKind::Refused, message)
}

fn wrong_password(user: &str) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!("the server does not accept the password of the user {user:?}"),
    )
}

impl Refusal {
    /// Whether a server, or a proxy in front of it, refuses to speak RESP3.
    pub(super) fn refuses_resp3(&self) -> bool {
        match self.code.as_str() {
            "NOPROTO" | "NOPERM" => true,
            "ERR" => self.text.starts_with("unknown command"),
            _ => false,
        }
    }

    /// The refusal of a login in the old protocol, as an error for `user`.
    pub(super) fn to_login_error(&self, user: &str) -> Error {
        match self.code.as_str() {
            // A server without a password says so in words only.
            "ERR" => wrong_password(user),
            _ => self.to_error(user, Rights("+auth")),
        }
    }
}

/// What became of a connection, as an error. Nothing is said about effects: the caller knows
/// whether a request was under way.
pub(super) fn broken(error: &io::Error) -> Error {
    let message = format!("the connection failed: {error}");
    Error::new(ErrorKind::Unreachable, message)
}

/// The server ended the connection, or we did.
pub(super) fn closed() -> Error {
    broken(&io::ErrorKind::BrokenPipe.into())
}

/// Why the bytes of a server are not read on.
pub(super) fn unread(unread: Unread) -> Error {
    let Unread::TooLong(length) = unread else {
        return garbled();
    };
    let message = format!(
        "the reply has at least {length} bytes, and the limit is {REPLY_MAX} bytes; is it a Redis \
         server, or does a key with the name of a lock hold other data?"
    );
    Error::new(ErrorKind::Garbled, message)
}

pub(super) fn garbled() -> Error {
    Error::new(
        ErrorKind::Garbled,
        "the answer is not of the Redis protocol; is it a Redis server?",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, text: &str) -> Error {
        Refusal::new(code, text).to_error("ann", Rights("+get +del"))
    }

    #[test]
    fn a_missing_right_is_named() {
        let text = "this user has no permissions to run the 'client|id' command";
        let said = error("NOPERM", text).to_string();
        assert_eq!(said, r#"the user "ann" lacks the right +client|id"#);
        let text = "The user executing the script can't run this command or subcommand";
        let said = error("ERR", text).to_string();
        assert_eq!(said, r#"the user "ann" lacks one of the rights +get +del"#);
        for text in [
            "this user has no permissions to access one of the keys used as arguments",
            "The user executing the script can't access at least one of the keys mentioned",
        ] {
            let said = error("NOPERM", text).to_string();
            assert!(said.contains("keys of this lock"), "{said}");
        }
        for text in [
            "this user has no permissions to access one of the channels used as arguments",
            "The user executing the script can't publish to the channel mentioned in the command",
        ] {
            let said = error("NOPERM", text).to_string();
            assert_eq!(said, r#"the user "ann" needs the rule &leasehold:inbox:*"#);
        }
    }

    #[test]
    fn each_code_has_its_kind() {
        for (code, text, kind) in [
            ("NOAUTH", "Authentication required.", ErrorKind::Refused),
            (
                "WRONGPASS",
                "invalid username-password pair",
                ErrorKind::Refused,
            ),
            ("READONLY", "You can't write", ErrorKind::Refused),
            ("OOM", "command not allowed", ErrorKind::Refused),
            ("MISCONF", "Redis is configured to save", ErrorKind::Refused),
            ("LOADING", "Redis is loading", ErrorKind::Unreachable),
            (
                "BUSY",
                "Redis is busy running a script",
                ErrorKind::Unreachable,
            ),
            (
                "ERR",
                "max number of clients reached",
                ErrorKind::Unreachable,
            ),
            ("MOVED", "3999 127.0.0.1:6381", ErrorKind::Unsupported),
            ("ERR", "unknown command 'EVALSHA'", ErrorKind::Unsupported),
            ("WRONGTYPE", "Operation against a key", ErrorKind::Corrupt),
            (
                "ERR",
                "Error running script (call to f_0): @user_script:9: WRONGTYPE Operation",
                ErrorKind::Corrupt,
            ),
        ] {
            assert_eq!(error(code, text).kind(), kind, "{code} {text}");
        }
    }
}
