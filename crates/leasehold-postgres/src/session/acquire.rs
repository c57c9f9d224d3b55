//! Attempts, and the waits between them.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{WallTime, within};
use leasehold::store::{AcquireError, Busy, Grant, LockRequest, Progress, Term, locked};
use leasehold::{Effect, Error};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::link::Slot;
use super::requests::{ACQUIRE, Answer, answer, column, micros, mode_number};
use super::waits::{HandOver, News, Wait};
use super::{PostgresSession, places};
use crate::client_text;
use crate::connection::failure;
use crate::schema::sql_in;

/// How often a waiter asks without news, if few wait. It then learns its position.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The shortest time until a waiter asks when a lease is about to end.
const ASK_SOON: Duration = Duration::from_millis(20);

/// The longest pause after a failure.
const RETRY_MAX: Duration = Duration::from_secs(2);

/// A holder of a lock, also one whose lease is over, and whose transaction may be open. It waits for no row.
const HOLDER: &str = "select owner from leasehold.lock where name = $1 and owner is not null \
     union all select owner from leasehold.sharer where name = $1 limit 1";

/// What ends a pause between two attempts.
enum Paused {
    /// Another guard of this client passed the lock on.
    Granted(HandOver),
    /// The lock may be free.
    Told,
    /// Nothing new.
    Long,
}

/// What an attempt brings.
enum Asked {
    Answered(Row),
    /// A transaction keeps the row of the lock, which has this holder.
    Held(Row),
}

impl PostgresSession {
    /// Asks for the lock until it is granted, unless the request does not wait. The place in the queue is that of the
    /// owner, and it gets a place that was lost again by its ticket.
    pub(super) async fn acquire_in_turn(
        &self,
        attempts: &Arc<Slot>,
        request: &LockRequest,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let client = client_text::client(&request.client)?;
        let wait = request
            .is_queued()
            .then(|| self.0.waits.enter(request.owner, &request.key));
        let (mut is_settled, mut ticket) = (true, None);
        let (mut proposal, mut failures, mut is_told) = (request.proposal, 0, false);
        let granted = loop {
            let turn = match is_told || !request.waits {
                true => None,
                false => self.0.waits.turn_to_ask().await,
            };
            let since = self.now();
            let answer = self
                .attempt(attempts, request, &client, (proposal, ticket))
                .await;
            drop(turn);
            match answer {
                Ok(Answer::Granted(fence)) => break HandOver { fence, since },
                Ok(Answer::Busy(busy, _)) if !request.waits => {
                    return Err(AcquireError::Busy(busy));
                }
                Ok(Answer::Busy(busy, place)) => {
                    (ticket, failures) = (place.or(ticket), 0);
                    progress.busy(busy.clone());
                    self.prepare_renewals(attempts, request).await;
                    match &wait {
                        Some(wait) => match self.pause(request, wait, &busy, progress).await {
                            Paused::Granted(granted) => break granted,
                            Paused::Told => is_told = true,
                            Paused::Long => is_told = false,
                        },
                        None => self.0.context.env().poll_pause().await,
                    }
                }
                Err(error) => {
                    is_settled &= error.effect() == Effect::None;
                    if !request.waits || !error.is_retryable() {
                        return Err(match is_settled && ticket.is_none() {
                            true => error.into(),
                            false => error.with_unknown_effect().into(),
                        });
                    }
                    progress.unavailable(error);
                    self.pause_after(failures).await;
                    failures += 1;
                    is_told = false;
                }
            }
            proposal = proposal.max(self.0.context.env().clock.wall());
        };
        if is_settled {
            locked(&self.0.settled).insert(request.owner);
        }
        self.prepare_renewals(attempts, request).await;
        let term = Term::new(granted.since, request.ttl);
        Ok(Grant::new(granted.fence, term))
    }

    /// Waits until it may be the turn of the request.
    async fn pause(
        &self,
        request: &LockRequest,
        wait: &Wait<'_>,
        busy: &Busy,
        progress: &Progress<'_>,
    ) -> Paused {
        let env = self.0.context.env();
        if wait.has_place() {
            let keeping = places::keep(Arc::downgrade(&self.0), Arc::clone(&env.clock));
            self.0.context.spawn(keeping);
        }
        let clock = &*env.clock;
        let usual = self.0.waits.pace(ASK_AGAIN);
        let usual = env.random_span(usual, usual + usual / 4);
        // A lease ends without a notification. The first waiter takes the lock then, and the others follow.
        let rest = busy.remaining.filter(|_| busy.position == Some(1));
        let mut until = clock.now() + rest.map_or(usual, |rest| rest.clamp(ASK_SOON, usual));
        let mut is_told = false;
        loop {
            match within(clock, until, wait.news()).await {
                None if is_told => return Paused::Told,
                None | Some(News::Gone) => return Paused::Long,
                Some(News::Ask(Duration::ZERO)) => return Paused::Told,
                Some(News::Ask(rest)) => {
                    (until, is_told) = (until.min(clock.now() + rest.max(ASK_SOON)), true);
                }
                // If the grant is old, asking renews it.
                Some(News::Granted(grant)) => {
                    return match clock.now().since(grant.since) < request.usable_ttl() / 6 {
                        true => Paused::Granted(grant),
                        false => Paused::Told,
                    };
                }
                Some(News::Away(error)) => progress.unavailable(error),
                Some(News::Back) => progress.busy(busy.clone()),
            }
        }
    }

    /// Pauses after a failed attempt, longer after each. The pause is random, so that clients spread out after an outage.
    async fn pause_after(&self, failures: u32) {
        let env = self.0.context.env();
        let most = Duration::from_millis(50).saturating_mul(1 << failures.min(10));
        let pause = env.random_span(Duration::from_millis(10), most.min(RETRY_MAX));
        env.clock.sleep_until(env.clock.now() + pause).await;
    }

    /// Asks once. `ticket` is that of the place that the request had before.
    async fn attempt(
        &self,
        attempts: &Arc<Slot>,
        request: &LockRequest,
        client: &str,
        (proposal, ticket): (WallTime, Option<i64>),
    ) -> Result<Answer, Error> {
        let (key, owner) = (request.key.as_str(), request.owner.to_string());
        let (mode, ttl) = (mode_number(request.mode), micros(request.ttl));
        let proposal = i64::try_from(proposal.as_micros()).unwrap_or(i64::MAX);
        let asking = attempts.ask(attempt_limit(request), async |link| {
            let parameters: &[&(dyn ToSql + Sync)] = &[
                &key,
                &owner,
                &client,
                &mode,
                &ttl,
                &proposal,
                &request.waits,
                &request.barges,
                &ticket,
            ];
            let statement = &link.statements[ACQUIRE];
            // A request that waits has the next try later.
            for is_last in [request.waits, true] {
                match link.client.query_one(statement, parameters).await {
                    Err(error) if failure::is_row_in_use(&error) => {
                        let holder = sql_in(self.schema(), HOLDER);
                        let parameter = [(&key as &(dyn ToSql + Sync), Type::TEXT)];
                        match link.client.query_typed_opt(&holder, &parameter).await? {
                            Some(row) => return Ok(Asked::Held(row)),
                            None if is_last => return Err(error),
                            None => {}
                        }
                    }
                    answer => return answer.map(Asked::Answered),
                }
            }
            unreachable!("the last try returns")
        });
        match asking.await? {
            Asked::Answered(row) => answer(column(&row, 0)?, request),
            Asked::Held(row) => {
                let holder = column::<&str>(&row, 0)?.parse().ok();
                Ok(Answer::Busy(Busy::by(holder), None))
            }
        }
    }
}

/// How long an attempt may take. The client gives one that does not wait up after [`LockRequest::LIMIT_MAX`].
fn attempt_limit(request: &LockRequest) -> Duration {
    match request.waits {
        true => request.limit(),
        false => request.limit().min(LockRequest::LIMIT_MAX),
    }
}
