//! What an error of the server or of the driver means: pure.

use std::error::Error as StdError;
use std::io;

use leasehold::{Error, ErrorKind};
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::connection::bounded::Excess;

/// What the answer of a server means for a client that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The same request fails again, until a person changes something.
    Refused,
    /// The server answers, and cannot do it now. A wait continues.
    NotReady,
    /// The server cannot be reached, or the session is no longer what it was.
    Lost,
    /// The database cannot store this text.
    Input,
    /// The tables or the functions do not exist.
    Missing,
    /// The data at the server is damaged.
    Damaged,
}

/// Sorts the errors of PostgreSQL by their code, or by its class, which is the first two characters. The first row that fits
/// counts. All others are [`Meaning::Refused`].
const MEANINGS: [(&str, Meaning); 19] = [
    // A pooler or the server closes the connection, or cannot open it.
    ("08", Meaning::Lost),
    ("22021", Meaning::Input),
    ("22P05", Meaning::Input),
    // Set read-only, or a standby.
    ("25006", Meaning::NotReady),
    // Limits of an administrator for transactions.
    ("25P", Meaning::NotReady),
    // A prepared statement is gone, for example because a pooler gave out another session.
    ("26", Meaning::Lost),
    ("3F000", Meaning::Missing),
    // The transaction lost against another one.
    ("40", Meaning::NotReady),
    ("42703", Meaning::Missing),
    ("42883", Meaning::Missing),
    ("42P01", Meaning::Missing),
    // Connections, memory or the disk are used up.
    ("53", Meaning::NotReady),
    // An object is in use, or the database accepts no connections at present.
    ("55", Meaning::NotReady),
    // The database was dropped.
    ("57P04", Meaning::Refused),
    // The server starts, stops, or ended the request.
    ("57", Meaning::NotReady),
    // The machine of the server has an I/O error.
    ("58", Meaning::NotReady),
    ("XX001", Meaning::Damaged),
    ("XX002", Meaning::Damaged),
    ("", Meaning::Refused),
];

/// Sorts the errors of the driver by the beginning of their text: it does not show their kinds. All others mean that
/// the connection broke.
const DRIVER: [(&str, ErrorKind); 10] = [
    ("error performing TLS handshake", ErrorKind::Refused),
    ("authentication error", ErrorKind::Refused),
    ("invalid configuration", ErrorKind::Refused),
    ("error encoding message", ErrorKind::InvalidInput),
    ("error serializing parameter", ErrorKind::InvalidInput),
    ("unexpected message", ErrorKind::InvalidResponse),
    ("error parsing response", ErrorKind::InvalidResponse),
    ("error deserializing column", ErrorKind::InvalidResponse),
    ("invalid column", ErrorKind::InvalidResponse),
    ("query returned an unexpected", ErrorKind::InvalidResponse),
];

/// Returns the error of a request that was sent. Its effect is unknown, unless the server rolled the request back.
pub(crate) fn of_request(error: tokio_postgres::Error) -> Error {
    let Some(answer) = error.as_db_error() else {
        return broken(error).with_unknown_effect();
    };
    // A session that ends may have committed.
    let is_final = answer.parsed_severity() == Some(Severity::Error);
    let known = of_answer(answer);
    match is_final {
        true => known.with_source(error),
        false => known.with_source(error).with_unknown_effect(),
    }
}

/// Returns the error of a connection that could not be opened. Nothing was asked, so it has no effect.
pub(crate) fn of_connecting(error: tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(answer) => of_answer(answer).with_source(error),
        None => broken(error),
    }
}

/// Returns the error of several servers that all failed. A wait makes sense if it does for one of them.
pub(crate) fn of_all(mut failures: Vec<(String, Error)>) -> Error {
    failures.sort_by_key(|(_, error)| (!error.is_not_ready(), !error.is_retryable()));
    let texts = failures
        .iter()
        .map(|(server, error)| format!("{server}: {}", error.reason()));
    let text = texts.collect::<Vec<_>>().join("; ");
    let is_alone = failures.len() == 1;
    match failures.into_iter().next() {
        Some((_, error)) if is_alone => error,
        Some((_, first)) if first.is_not_ready() => Error::new(first.kind(), text).with_not_ready(),
        Some((_, first)) => Error::new(first.kind(), text),
        None => Error::new(ErrorKind::InvalidInput, "no server"),
    }
}

/// Whether the next request needs another connection: this one is broken, its statements are outdated, or another server
/// may accept writes.
pub(crate) fn ends_connection(error: &tokio_postgres::Error) -> bool {
    const OUTDATED: [SqlState; 3] = [
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    error.as_db_error().is_none_or(|answer| {
        answer.parsed_severity() != Some(Severity::Error) || OUTDATED.contains(answer.code())
    })
}

/// Whether another transaction holds the row for longer than a request waits.
pub(crate) fn is_row_in_use(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// The error for the row of a lock that a transaction of its holder keeps.
pub(crate) fn row_in_use() -> Error {
    let text = "a transaction that checked a fence of this lock is still open; the lock can change only afterwards";
    Error::new(ErrorKind::Unreachable, text)
}

/// The error of a server that accepts no writes.
pub(crate) fn read_only() -> Error {
    let text = "the server is a standby, or read-only; give the address of the primary";
    Error::new(ErrorKind::Unreachable, text).with_not_ready()
}

/// The error of a request that waited too long for a row or a table. Nothing says which of them it was.
fn locked() -> Error {
    let text = "another transaction has locked what the lock needs: a table, as ALTER TABLE, VACUUM FULL and LOCK TABLE do, or \
         a row, as one that checked a fence does; the lock can change only afterwards";
    Error::new(ErrorKind::Unreachable, text).with_not_ready()
}

/// Whether the functions of the schema do not exist.
pub(crate) fn is_missing_schema(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| meaning(code.code()) == Meaning::Missing)
}

fn meaning(code: &str) -> Meaning {
    let row = MEANINGS.iter().find(|(prefix, _)| code.starts_with(prefix));
    row.map_or(Meaning::Refused, |(_, meaning)| *meaning)
}

fn of_answer(answer: &DbError) -> Error {
    let (said, code) = (answer.message(), answer.code().code());
    match *answer.code() {
        SqlState::READ_ONLY_SQL_TRANSACTION => return read_only(),
        SqlState::LOCK_NOT_AVAILABLE => return locked(),
        // The driver sends what it sets at the start of a session. A pooler may refuse that.
        SqlState::PROTOCOL_VIOLATION if said.contains("startup parameter") => {
            return Error::new(
                ErrorKind::Refused,
                format!(
                    "{said}; this looks like a connection pooler: set ignore_startup_parameters = options and pool_mode = session \
                     in its configuration, or give the address of the server itself"
                ),
            );
        }
        _ => {}
    }
    let hint = match code {
        "28P01" => "; check user and password",
        "28000" if said.contains("no encryption") => {
            "; the server may demand TLS: add sslmode=require"
        }
        "42501" if said.contains("for database") => {
            "; the user lacks the right to connect to it, or the right CREATE, which `leasehold init` needs"
        }
        "42501" => "; `leasehold doctor` prints the GRANT that is missing",
        "22021" | "22P05" => {
            "; a database with the encoding UTF8 can store every name and every label, and this one cannot"
        }
        _ => "",
    };
    match meaning(code) {
        Meaning::Refused => Error::new(ErrorKind::Refused, format!("{said}{hint} ({code})")),
        Meaning::NotReady => Error::new(ErrorKind::Unreachable, said).with_not_ready(),
        Meaning::Lost => Error::new(
            ErrorKind::Unreachable,
            format!("the server answers: {said}"),
        ),
        Meaning::Input => Error::new(ErrorKind::InvalidInput, format!("{said}{hint}")),
        Meaning::Missing => Error::new(
            ErrorKind::NotInitialized,
            format!("{said}; create the schema with `leasehold init`"),
        ),
        Meaning::Damaged => Error::new(ErrorKind::Corrupt, said),
    }
}

fn broken(error: tokio_postgres::Error) -> Error {
    let source = error.source();
    let network = source.and_then(|source| source.downcast_ref::<io::Error>());
    let inner = network.and_then(io::Error::get_ref);
    if let Some(excess) = inner.and_then(|inner| inner.downcast_ref::<Excess>()) {
        return Error::new(ErrorKind::InvalidResponse, excess.to_string()).with_source(error);
    }
    let (what, reason) = (
        error.to_string(),
        source.map(|source| format!(": {source}")),
    );
    let row = DRIVER.iter().find(|(begin, _)| what.starts_with(begin));
    let kind = match row {
        // The network failed, not the other side.
        _ if network.is_some() && inner.is_none() => ErrorKind::Unreachable,
        Some((_, kind)) => *kind,
        None => ErrorKind::Unreachable,
    };
    Error::new(kind, what + reason.as_deref().unwrap_or_default()).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_once() {
        for (code, expected) in [
            ("08006", Meaning::Lost),
            ("08P01", Meaning::Lost),
            ("0A000", Meaning::Refused),
            ("22021", Meaning::Input),
            ("22P05", Meaning::Input),
            ("22003", Meaning::Refused),
            ("23505", Meaning::Refused),
            ("25006", Meaning::NotReady),
            ("25P02", Meaning::NotReady),
            ("26000", Meaning::Lost),
            ("28000", Meaning::Refused),
            ("28P01", Meaning::Refused),
            ("3D000", Meaning::Refused),
            ("3F000", Meaning::Missing),
            ("40001", Meaning::NotReady),
            ("40P01", Meaning::NotReady),
            ("42501", Meaning::Refused),
            ("42601", Meaning::Refused),
            ("42883", Meaning::Missing),
            ("42P01", Meaning::Missing),
            ("53100", Meaning::NotReady),
            ("53300", Meaning::NotReady),
            ("54000", Meaning::Refused),
            ("55000", Meaning::NotReady),
            ("55P03", Meaning::NotReady),
            ("57014", Meaning::NotReady),
            ("57P01", Meaning::NotReady),
            ("57P03", Meaning::NotReady),
            ("57P04", Meaning::Refused),
            ("58030", Meaning::NotReady),
            ("P0001", Meaning::Refused),
            ("XX000", Meaning::Refused),
            ("XX001", Meaning::Damaged),
            ("?", Meaning::Refused),
        ] {
            assert_eq!(meaning(code), expected, "{code}");
        }
    }

    #[test]
    fn hope_for_one_server_is_hope() {
        let error = |kind, text: &str| (text.to_owned(), Error::new(kind, text));
        let refused = error(ErrorKind::Refused, "one");
        let silent = error(ErrorKind::Unreachable, "two");
        let standby = ("three".to_owned(), read_only());
        let one = of_all(vec![refused.clone()]);
        assert_eq!((one.kind(), one.reason()), (ErrorKind::Refused, "one"));
        let two = of_all(vec![refused.clone(), silent.clone()]);
        assert_eq!(two.reason(), "two: two; one: one");
        assert!(two.is_retryable() && !two.is_not_ready());
        assert!(of_all(vec![refused, silent, standby]).is_not_ready());
    }
}
