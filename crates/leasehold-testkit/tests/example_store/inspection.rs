//! Holders and waiters, for people.

use std::time::Duration;

use leasehold::look::{Holder, ListedLock, LockListing, Owner, Pattern, Waiter};
use leasehold::store::{BoxFuture, Inspection, LockRequest, Ticket};
use leasehold::{Error, ErrorKind, Key, Mode};

use crate::link::Reply;
use crate::store::{ExampleSession, unexpected};

impl Inspection for ExampleSession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(async move {
            let rows = self.rows("locks").await?;
            let held = rows.into_iter().filter(|row| row.key == *key);
            Ok(held.map(Row::into_holder).collect())
        })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(async move {
            let rows = self.rows(&format!("waiters\t{key}")).await?;
            Ok(rows.into_iter().map(Row::into_waiter).collect())
        })
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        Box::pin(async move {
            let mut rows = self.rows("locks").await?;
            rows.retain(|row| pattern.matches(row.key.as_str()));
            let more = rows.len() > limit;
            rows.truncate(limit);
            let locks = rows.into_iter().map(|row| {
                let key = row.key.clone();
                ListedLock::new(key, vec![row.into_holder()])
            });
            Ok(LockListing::new(locks.collect(), more))
        })
    }
}

/// A lock or a waiter, as the server shows it.
struct Row {
    key: Key,
    owner: Owner,
    left: Duration,
    client: Option<leasehold::look::ClientInfo>,
}

impl ExampleSession {
    async fn rows(&self, request: &str) -> Result<Vec<Row>, Error> {
        let link = self.link(LockRequest::LIMIT_MAX).await?;
        let mut call = link.send(request)?;
        let reply = self.in_time(LockRequest::LIMIT_MAX, call.reply()).await;
        let reply = reply.unwrap_or_else(|| {
            call.link().close();
            Err(Error::new(ErrorKind::Unreachable, "no answer in time"))
        });
        match reply.map_err(Error::without_effect)? {
            Reply::Rows(fields) => fields.chunks(4).map(Row::parse).collect(),
            other => Err(unexpected(&other).without_effect()),
        }
    }
}

impl Row {
    fn parse(fields: &[String]) -> Result<Self, Error> {
        let row = match fields {
            [key, owner, left, client] => owner.parse().ok().zip(left.parse().ok()).map(
                |(owner, left)| -> Result<Self, Error> {
                    Ok(Self {
                        key: Key::new(key)?,
                        owner,
                        left: Duration::from_millis(left),
                        client: serde_json::from_str(client).ok(),
                    })
                },
            ),
            _ => None,
        };
        let text = || format!("{fields:?} is not a lock");
        row.unwrap_or_else(|| Err(Error::new(ErrorKind::InvalidResponse, text())))
    }

    fn into_holder(self) -> Holder {
        let mut holder = Holder::of(self.owner, Mode::Exclusive);
        holder.remaining = Some(self.left);
        holder.client = self.client;
        holder
    }

    fn into_waiter(self) -> Waiter {
        let ticket = Ticket {
            since: self.owner.since(),
            waiter: self.owner,
        };
        let mut waiter = Waiter::unknown(ticket, Mode::Exclusive);
        waiter.client = self.client;
        waiter
    }
}
