//! Values next to locks.

use leasehold::look::Pattern;
use leasehold::store::{
    BoxFuture, LockRequest, Opened, Reading, RecordKey, RecordWrite, Records, Version,
    WriteOutcome, Written,
};
use leasehold::{Error, ErrorKind, Fence, Key};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::schema::sql_in;
use crate::session::PostgresSession;
use crate::session::requests::{column, micros, span};

const OPEN: &str =
    "select superseded, fence, step, value, remaining from leasehold.open_record($1, $2)";
const WRITE: &str = "select leasehold.write_record($1, $2, $3, $4, $5)";
const READ: &str = "select null::bigint, fence, step, value, leasehold.micros(until) \
     from leasehold.record where name = $1 and fence is not null and until > clock_timestamp()";

/// The records with a value whose names begin like this, by name.
const LIST: &str = "select name from leasehold.record \
     where starts_with(name, $1) and fence is not null and until > clock_timestamp() order by name";

impl Records for PostgresSession {
    fn open_record<'a>(
        &'a self,
        record: &'a RecordKey,
        fence: Fence,
    ) -> BoxFuture<'a, Result<Opened, Error>> {
        Box::pin(async move {
            let (key, fence) = (record.key.as_str(), number(fence));
            let row = self
                .row(OPEN, &[(&key, Type::TEXT), (&fence, Type::INT8)])
                .await?;
            let row = row.ok_or_else(|| invalid("no row"))?;
            match column(&row, 0)? {
                Some(greatest) => Ok(Opened::Superseded(fence_of(greatest)?)),
                None => Ok(Opened::Open(Reading::settled(written(&row)?))),
            }
        })
    }

    fn write_record<'a>(
        &'a self,
        record: &'a RecordKey,
        write: &'a RecordWrite,
    ) -> BoxFuture<'a, Result<WriteOutcome, Error>> {
        Box::pin(async move {
            let (key, fence) = (record.key.as_str(), number(write.version.fence));
            let (step, value) = (i64::from(write.version.step), &*write.bytes);
            let retention = micros(write.retention);
            let parameters: &[(&(dyn ToSql + Sync), Type)] = &[
                (&key, Type::TEXT),
                (&fence, Type::INT8),
                (&step, Type::INT8),
                (&value, Type::BYTEA),
                (&retention, Type::INT8),
            ];
            let row = self.row(WRITE, parameters).await?;
            let greatest = row.map_or(Ok(None), |row| column(&row, 0))?;
            match greatest {
                Some(greatest) => Ok(WriteOutcome::Superseded(fence_of(greatest)?)),
                None => Ok(WriteOutcome::Written),
            }
        })
    }

    fn read_record<'a>(&'a self, record: &'a RecordKey) -> BoxFuture<'a, Result<Reading, Error>> {
        Box::pin(async move {
            let key = record.key.as_str();
            let row = self.row(READ, &[(&key, Type::TEXT)]).await;
            let row = row.map_err(Error::without_effect)?;
            let value = row.map(|row| written(&row)).transpose()?;
            Ok(Reading::settled(value.flatten()))
        })
    }

    fn list_records<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(async move {
            let rows = self.rows(LIST, pattern.prefix()).await?;
            let mut keys = Vec::new();
            for row in &rows {
                let name: &str = column(row, 0)?;
                if pattern.matches(name) && keys.len() < limit {
                    keys.push(Key::new(name)?);
                }
            }
            Ok(keys)
        })
    }
}

impl PostgresSession {
    async fn row(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Option<Row>, Error> {
        let asking = self.ask(LockRequest::LIMIT_MAX, async |link| {
            let sql = sql_in(self.schema(), sql);
            link.client.query_typed_opt(&sql, parameters).await
        });
        asking.await
    }
}

/// Reads the value of a record, which follows another column.
fn written(row: &Row) -> Result<Option<Written>, Error> {
    let Some(fence) = column(row, 1)? else {
        return Ok(None);
    };
    let step = u32::try_from(column::<i64>(row, 2)?).map_err(|_| invalid("a step that is none"))?;
    let version = Version {
        fence: fence_of(fence)?,
        step,
    };
    let (bytes, remaining): (Vec<u8>, i64) = (column(row, 3)?, column(row, 4)?);
    Ok(Some(Written::new(version, bytes, span(remaining))))
}

fn number(fence: Fence) -> i64 {
    i64::try_from(fence).unwrap_or(i64::MAX)
}

fn fence_of(number: i64) -> Result<Fence, Error> {
    Fence::try_from(number).map_err(|_| invalid("a fence that is none"))
}

fn invalid(what: &str) -> Error {
    let text = format!("the record has {what}");
    Error::new(ErrorKind::Corrupt, text).with_unknown_effect()
}
