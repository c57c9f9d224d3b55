//! The tables and functions of the store, and their version.

use leasehold::{Error, ErrorKind};
use tokio_postgres::{Client, Transaction};

use crate::connection::failure;
use crate::url::SEARCH_PATH;

/// The version of the schema that this crate uses. A change of the tables is one more entry in [`MIGRATIONS`].
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

/// The changes of the tables. The first makes version 1.
const MIGRATIONS: [&str; 4] = [
    include_str!("../sql/tables.sql"),
    include_str!("../sql/version_2.sql"),
    include_str!("../sql/version_3.sql"),
    include_str!("../sql/version_4.sql"),
];

/// The functions, which each version replaces.
const FUNCTIONS: [&str; 9] = [
    include_str!("../sql/acquire.sql"),
    include_str!("../sql/places.sql"),
    include_str!("../sql/pass_on.sql"),
    include_str!("../sql/release.sql"),
    include_str!("../sql/renew.sql"),
    include_str!("../sql/break.sql"),
    include_str!("../sql/holds.sql"),
    include_str!("../sql/records.sql"),
    include_str!("../sql/sweep.sql"),
];

/// Serializes those that initialize a schema. Any number that others are unlikely to use.
const INIT_LOCK: i64 = 0x6c65_6173_6568_6f6c;

/// What [`PostgresStore::init`](crate::PostgresStore::init) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initialized {
    /// The schema did not exist, and was created.
    Created,
    /// The schema was of this earlier version, and was changed.
    Upgraded(i32),
    /// The schema is of this version already.
    Current,
}

/// Returns the SQL with the functions and tables in `schema`. The files name them in the default schema.
pub(crate) fn sql_in(schema: &str, sql: &str) -> String {
    sql.replace("leasehold.", &format!("\"{schema}\"."))
}

/// Creates the schema, or changes it to this version. Several may do so at once.
pub(crate) async fn init(client: &mut Client, schema: &str) -> Result<Initialized, Error> {
    let steps = async {
        let transaction = client.transaction().await?;
        let done = init_in(&transaction, schema).await?;
        if done.is_ok() {
            transaction.commit().await?;
        }
        Ok(done)
    };
    steps
        .await
        .unwrap_or_else(|error| Err(failure::of_request(error)))
}

async fn init_in(
    transaction: &Transaction<'_>,
    schema: &str,
) -> Result<Result<Initialized, Error>, tokio_postgres::Error> {
    // A change of many rows takes long, and so does another that is under way.
    let patient = "set local lock_timeout = 0; set local statement_timeout = 0";
    transaction.batch_execute(patient).await?;
    transaction.batch_execute(&pinned()).await?;
    let lock = "select pg_advisory_xact_lock($1)";
    transaction.execute(lock, &[&INIT_LOCK]).await?;
    // Only who may create schemas may run `create schema if not exists`, even if it does.
    let exists = "select from pg_namespace where nspname = $1";
    if transaction.query_opt(exists, &[&schema]).await?.is_none() {
        transaction
            .batch_execute(&format!("create schema \"{schema}\""))
            .await?;
    }
    let found = version_in(transaction, schema).await?;
    if found == VERSION {
        return Ok(Ok(Initialized::Current));
    }
    if found > VERSION {
        return Ok(Err(wrong_version(schema, Some(found))));
    }
    let migrations = MIGRATIONS
        .iter()
        .skip(usize::try_from(found).unwrap_or_default());
    for sql in migrations.chain(&FUNCTIONS) {
        transaction.batch_execute(&sql_in(schema, sql)).await?;
    }
    let version = sql_in(
        schema,
        "delete from leasehold.version; insert into leasehold.version values (VERSION)",
    );
    transaction
        .batch_execute(&version.replace("VERSION", &VERSION.to_string()))
        .await?;
    Ok(Ok(match found {
        0 => Initialized::Created,
        found => Initialized::Upgraded(found),
    }))
}

/// Returns the statement that sets the search path of a transaction. Behind a pooler, the session may have another one.
pub(crate) fn pinned() -> String {
    format!("set local search_path = {SEARCH_PATH}")
}

/// The version of the tables; 0 if there are none.
async fn version_in(
    transaction: &Transaction<'_>,
    schema: &str,
) -> Result<i32, tokio_postgres::Error> {
    let table = "create table if not exists leasehold.version (number integer not null)";
    transaction.batch_execute(&sql_in(schema, table)).await?;
    let read = sql_in(schema, READ_VERSION);
    let row = transaction.query_opt(&read, &[]).await?;
    row.map_or(Ok(0), |row| row.try_get(0))
}

/// Reads the version of the schema.
pub(crate) const READ_VERSION: &str = "select number from leasehold.version";

/// Checks the version that a client reads when it connects. `found` is `None` if there is no schema.
pub(crate) fn check(schema: &str, found: Option<i32>) -> Result<(), Error> {
    match found {
        Some(VERSION) => Ok(()),
        found => Err(wrong_version(schema, found)),
    }
}

fn wrong_version(schema: &str, found: Option<i32>) -> Error {
    let text = match found {
        None | Some(0) => format!(
            "the schema {schema:?} does not exist in this database; create it with `leasehold init`"
        ),
        Some(found) if found < VERSION => format!(
            "the schema {schema:?} has version {found}, and this client needs {VERSION}; run `leasehold init`"
        ),
        Some(found) => format!(
            "the schema {schema:?} has version {found}, which is newer than {VERSION}; use a newer leasehold"
        ),
    };
    Error::new(ErrorKind::NotInitialized, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_is_moved_to_another_schema() {
        let sql = sql_in("order", "select leasehold.micros(x) from leasehold.lock");
        assert_eq!(sql, r#"select "order".micros(x) from "order".lock"#);
        for sql in MIGRATIONS.iter().chain(&FUNCTIONS) {
            assert!(!sql_in("other", sql).contains("leasehold."));
        }
    }

    #[test]
    fn wrong_versions_name_the_remedy() {
        assert!(check("s", Some(VERSION)).is_ok());
        for (found, remedy) in [
            (None, "create it with `leasehold init`"),
            (Some(0), "create it with `leasehold init`"),
            (Some(VERSION + 1), "newer leasehold"),
        ] {
            let error = check("s", found).unwrap_err();
            assert!(error.to_string().contains(remedy), "{error}");
            assert!(!error.is_retryable());
        }
    }
}
