//! The locks of all members, for people: each member answers, and a majority decides.

use std::future::Future;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use leasehold::clock::within;
use leasehold::look::{BreakRecord, BrokenLease, Holder, LockListing, Pattern, Waiter};
use leasehold::store::{Admin, BoxFuture, Inspection, rough_span};
use leasehold::{Error, ErrorKind, Key};
use leasehold_quorum::views::{self, Answers};

use super::session::RedisSession;
use crate::admin::Server;

impl RedisSession {
    /// Asks all members at once. A member that is much slower than a majority counts as silent. One that belongs to another
    /// quorum is not asked, since its answer would tell nothing of this one.
    pub(super) async fn ask_each<'a, T, F>(&'a self, ask: impl Fn(&'a Server) -> F) -> Answers<T>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let clock = &*self.context.env().clock;
        let began = clock.now();
        let mut asked: FuturesUnordered<_> = self
            .servers()
            .into_iter()
            .enumerate()
            .map(|(index, server)| {
                let answer = ask(server);
                let set = &self.store.set;
                async move {
                    let answer = match server.check_members(set).await {
                        Ok(()) => answer.await,
                        Err(error) => Err(error),
                    };
                    (index, answer)
                }
            })
            .collect();
        let mut answers: Vec<Option<Result<T, Error>>> =
            self.store.members.iter().map(|_| None).collect();
        let mut given = 0;
        while given <= self.store.members.len() / 2
            && let Some((index, answer)) = asked.next().await
        {
            given += usize::from(answer.is_ok());
            answers[index] = Some(answer);
        }
        let timeout = (4 * clock.now().since(began)).max(TIMEOUT_MIN);
        let rest = async {
            while let Some((index, answer)) = asked.next().await {
                answers[index] = Some(answer);
            }
        };
        // Members that are still silent then have no answer.
        let _ = within(clock, clock.now() + timeout, rest).await;
        let answers = self.store.member_ids().cloned().zip(answers);
        Answers::new(
            answers.map(|(id, answer)| (id, answer.unwrap_or_else(|| Err(silent(timeout))))),
        )
    }
}

/// How long to wait for the other members at least, once a majority answered.
const TIMEOUT_MIN: Duration = Duration::from_millis(40);

fn silent(span: Duration) -> Error {
    let text = format!("no answer within {} after a majority", rough_span(span));
    Error::new(ErrorKind::Unreachable, text)
}

impl Inspection for RedisSession {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        let asked = self.ask_each(move |server| server.holders(key));
        Box::pin(async { views::holders(asked.await) })
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        let asked = self.ask_each(move |server| server.waiters(key));
        Box::pin(async { views::waiters(asked.await) })
    }

    fn list_locks<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<LockListing, Error>> {
        let asked = self.ask_each(move |server| server.list_locks(pattern, limit));
        Box::pin(async move { views::list_locks(asked.await, limit) })
    }
}

impl Admin for RedisSession {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<BrokenLease, Error>> {
        let asked = self.ask_each(move |server| server.break_lease(key, record));
        Box::pin(async { views::broken(asked.await) })
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        let asked = self.ask_each(move |server| server.last_break(key));
        Box::pin(async { views::last_break(asked.await) })
    }
}
