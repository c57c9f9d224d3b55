//! What an error of the server or of the driver means: pure.

use std::error::Error as StdError;
use std::io;

use leasehold::{Error, ErrorKind};
use tokio_postgres::error::{DbError, Severity, SqlState};

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

/// Whether the next request needs another connection: this one is broken, or another server may accept writes.
pub(crate) fn ends_connection(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(|answer| {
        answer.parsed_severity() != Some(Severity::Error)
            || *answer.code() == SqlState::READ_ONLY_SQL_TRANSACTION
    })
}

/// Whether another transaction holds the row for longer than a request waits.
pub(crate) fn is_row_in_use(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// The error for such a row.
pub(crate) fn row_in_use() -> Error {
    let text = "a transaction that checked a fence of this lock is still open; the lock can change only afterwards";
    Error::new(ErrorKind::Unreachable, text)
}

/// Whether the functions of the schema do not exist.
pub(crate) fn is_missing_schema(error: &tokio_postgres::Error) -> bool {
    const MISSING: [SqlState; 4] = [
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::UNDEFINED_COLUMN,
    ];
    error.code().is_some_and(|code| MISSING.contains(code))
}

fn of_answer(answer: &DbError) -> Error {
    let said = answer.message();
    let unreachable = |text: String| Error::new(ErrorKind::Unreachable, text);
    let refused = |text: String| Error::new(ErrorKind::Refused, text);
    match answer.code() {
        code if *code == SqlState::INVALID_PASSWORD => {
            refused(format!("{said}; check user and password"))
        }
        code if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            let hint = if said.contains("no encryption") {
                "; the server may demand TLS: add sslmode=require"
            } else {
                ""
            };
            refused(format!("{said}{hint}"))
        }
        code if *code == SqlState::INVALID_CATALOG_NAME => refused(said.to_owned()),
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => refused(format!(
            "{said}; `leasehold doctor` prints the GRANT that is missing"
        )),
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => unreachable(
            "the server is a standby, or read-only; give the address of the primary".into(),
        )
        .with_not_ready(),
        code if *code == SqlState::LOCK_NOT_AVAILABLE => row_in_use(),
        code if *code == SqlState::CANNOT_CONNECT_NOW
            || *code == SqlState::TOO_MANY_CONNECTIONS =>
        {
            unreachable(said.to_owned()).with_not_ready()
        }
        // The driver sends what it sets at the start of a session. A pooler may refuse that.
        code if *code == SqlState::PROTOCOL_VIOLATION && said.contains("startup parameter") => {
            refused(format!(
                "{said}; this looks like a connection pooler: set ignore_startup_parameters = options and pool_mode = session \
                 in its configuration, or give the address of the server itself"
            ))
        }
        _ => unreachable(format!("the server answers: {said}")),
    }
}

fn broken(error: tokio_postgres::Error) -> Error {
    let reason = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    let is_tls = error.to_string().contains("TLS") && !is_io(&error);
    let kind = if is_tls {
        ErrorKind::Refused
    } else {
        ErrorKind::Unreachable
    };
    Error::new(kind, reason).with_source(error)
}

/// Whether the network failed, not the other side.
fn is_io(error: &tokio_postgres::Error) -> bool {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.get_ref().is_none())
}
