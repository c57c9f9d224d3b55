//! Holders and waiters, for people.

use leasehold::clock::WallTime;
use leasehold::look::{Holder, ListedLock, LockListing, Owner, Pattern, Waiter};
use leasehold::store::{BoxFuture, Inspection, LockRequest, Ticket};
use leasehold::{Error, ErrorKind, Fence, Key};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::client_text;
use crate::schema::sql_in;
use crate::session::PostgresSession;
use crate::session::requests::{column, mode_of, span};

const HOLDERS: &str = "select name, owner, mode, fence, client, since, leasehold.micros(until), broken \
     from leasehold.holder where name = $1 order by fence";

const WAITERS: &str = "select owner, ticket, mode, client from leasehold.waiter \
     where name = $1 and until > clock_timestamp() order by ticket";

/// The holders of all locks whose names begin like this, by name.
const LIST: &str = "select name, owner, mode, fence, client, since, leasehold.micros(until), broken \
     from leasehold.holder where starts_with(name, $1) order by name, fence";

impl Inspection for PostgresSession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            let rows = self.rows(HOLDERS, key.as_str()).await?;
            rows.iter().map(holder).collect()
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async move {
            let rows = self.rows(WAITERS, key.as_str()).await?;
            rows.iter().map(waiter).collect()
        })
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        Box::pin(async move {
            let rows = self.rows(LIST, pattern.prefix()).await?;
            let mut locks: Vec<(Key, Vec<Holder>)> = Vec::new();
            for row in &rows {
                let (name, count): (&str, _) = (column(row, 0)?, locks.len());
                match locks.last_mut() {
                    Some((key, holders)) if key.as_str() == name => holders.push(holder(row)?),
                    _ if !pattern.matches(name) => {}
                    _ if count > limit => break,
                    _ => locks.push((Key::new(name)?, vec![holder(row)?])),
                }
            }
            let more = locks.len() > limit;
            locks.truncate(limit);
            let locks = locks
                .into_iter()
                .map(|(key, holders)| ListedLock::new(key, holders));
            Ok(LockListing::new(locks.collect(), more))
        })
    }
}

impl PostgresSession {
    /// Runs a query that changes nothing, with one text as its parameter.
    pub(crate) async fn rows(&self, sql: &str, parameter: &str) -> Result<Vec<Row>, Error> {
        let asking = self.ask(LockRequest::LIMIT_MAX, async |link| {
            let sql = sql_in(self.schema(), sql);
            link.client
                .query_typed(&sql, &[(&parameter, Type::TEXT)])
                .await
        });
        asking.await.map_err(Error::without_effect)
    }
}

fn holder(row: &Row) -> Result<Holder, Error> {
    let mut holder = Holder::of(owner(column(row, 1)?)?, mode_of(column(row, 2)?));
    holder.fence = Fence::try_from(column::<i64>(row, 3)?).ok();
    holder.client = column::<Option<&str>>(row, 4)?.and_then(client_text::read_client);
    let since = u64::try_from(column::<i64>(row, 5)?);
    holder.since = since.ok().map(WallTime::from_micros);
    holder.remaining = Some(span(column(row, 6)?));
    holder.broken = column(row, 7)?;
    Ok(holder)
}

fn waiter(row: &Row) -> Result<Waiter, Error> {
    let since = u64::try_from(column::<i64>(row, 1)?).unwrap_or_default();
    let ticket = Ticket {
        since: WallTime::from_micros(since),
        waiter: owner(column(row, 0)?)?,
    };
    let mut waiter = Waiter::unknown(ticket, mode_of(column(row, 2)?));
    waiter.client = column::<Option<&str>>(row, 3)?.and_then(client_text::read_client);
    Ok(waiter)
}

fn owner(text: &str) -> Result<Owner, Error> {
    let refuse = |_| Error::new(ErrorKind::Corrupt, format!("{text:?} is no owner"));
    text.parse().map_err(refuse)
}
