//! Breaking locks.

use leasehold::look::{BreakRecord, BrokenLease};
use leasehold::store::{Admin, BoxFuture, LockRequest};
use leasehold::{Error, Key};
use tokio_postgres::types::Type;

use crate::client_text;
use crate::schema::sql_in;
use crate::session::PostgresSession;
use crate::session::requests::{column, span};

const BREAK: &str = "select * from leasehold.break_lease($1, $2, $3, $4)";
const LAST: &str =
    "select record from leasehold.break where name = $1 and until > clock_timestamp()";

impl Admin for PostgresSession {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<BrokenLease, Error>> {
        Box::pin(async move {
            let text = client_text::break_record(record)?;
            let (key, owner) = (key.as_str(), record.owner.to_string());
            let asking = self.ask(LockRequest::LIMIT_MAX, async |link| {
                let sql = sql_in(self.schema(), BREAK);
                let parameters: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)] = &[
                    (&key, Type::TEXT),
                    (&owner, Type::TEXT),
                    (&text, Type::TEXT),
                    (&record.at_once, Type::BOOL),
                ];
                link.client.query_typed_one(&sql, parameters).await
            });
            let row = asking.await?;
            let closed_for = column::<Option<i64>>(&row, 1)?.map(span);
            Ok(BrokenLease::new(column(&row, 0)?, closed_for))
        })
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        Box::pin(async move {
            let key = key.as_str();
            let asking = self.ask(LockRequest::LIMIT_MAX, async |link| {
                let sql = sql_in(self.schema(), LAST);
                link.client
                    .query_typed_opt(&sql, &[(&key, Type::TEXT)])
                    .await
            });
            let row = asking.await.map_err(Error::without_effect)?;
            row.map(|row| client_text::read_break(column(&row, 0)?))
                .transpose()
        })
    }
}
