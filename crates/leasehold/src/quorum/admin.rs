//! Breaks a lock on all members.

use std::sync::Arc;

use super::Quorum;
use super::ballot::majority;
use super::link::Link;
use super::views::{self, Answers};
use crate::BoxFuture;
use crate::admin::Admin;
use crate::breaking::{BreakRecord, Broken};
use crate::error::{Error, ErrorKind};
use crate::key::Key;

impl Admin for Quorum {
    fn break_lease<'a>(
        &'a self,
        key: &'a Key,
        record: &'a BreakRecord,
    ) -> BoxFuture<'a, Result<Broken, Error>> {
        Box::pin(break_lease(&self.links, key, record))
    }

    fn last_break<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<BreakRecord>, Error>> {
        Box::pin(async {
            let asked = views::ask_each(&self.links, |link| {
                let key = key.clone();
                Box::pin(async move { link.last_break(&key).await })
            });
            let records = asked.await.of_a_majority()?.0.into_iter().flatten();
            Ok(records.max_by_key(|record| record.at))
        })
    }
}

/// Asks all members to break the lease. Afterwards a majority remembers the break, whether or not the lease
/// was there, so no majority can hold the lease again.
async fn break_lease(
    links: &[Arc<Link>],
    key: &Key,
    record: &BreakRecord,
) -> Result<Broken, Error> {
    let asked = views::ask_each(links, |link| {
        let (key, record) = (key.clone(), record.clone());
        Box::pin(async move { link.break_lease(&key, &record).await })
    });
    let Answers { given, failures } = asked.await;
    if given.len() >= majority(links.len()) {
        return Ok(Broken {
            stood: given.iter().any(|broken| broken.stood),
            shut_for: given.iter().filter_map(|broken| broken.shut_for).max(),
            members: given.len(),
        });
    }
    if let (1, [only]) = (links.len(), failures.as_slice()) {
        return Err(only.error.clone());
    }
    let text = format!(
        "the lock is broken on {} of {} members only, which is no majority: its holder may go on \
         renewing its lease on the others",
        given.len(),
        links.len()
    );
    let error = Error::new(ErrorKind::NoQuorum, text).with_members(failures);
    Err(error.with_unknown_effect())
}
