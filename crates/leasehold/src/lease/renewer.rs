use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument as _, Span};

use super::client_context::ClientContext;
use super::failed_renewals::FailedRenewals;
use super::held_lease::HeldLease;
use super::new_leases::NewLeases;
use super::pending_attempts::PendingAttempts;
use super::release::Release;
use super::timers::{Timers, Watch};
use super::validity::EARLY_MAX;
use crate::env::BoxFuture;
use crate::env::clock::{self, BootInstant};
use crate::runtime::background;
use crate::store::{Held, LockRequest, RenewReply};
use crate::telemetry::{LockEvent, LogEvent, RenewalEnd, spans};
use crate::types::{Error, ErrorKind, LostReason, Mode};

/// A message from a client to its renewer.
#[derive(Debug)]
pub(crate) enum RenewerCommand {
    /// A list has a new lease or attempt for which something is due sooner than for those before.
    Look,
    /// Renew this lease at once, in the mode that it has by now, and report the outcome. A sender that is
    /// dropped without one means that the lease is no longer kept.
    Renew(Arc<HeldLease>, Asking),
    /// The guard is gone: stop renewing.
    Forget(u64),
    /// Stop renewing all leases, and report them.
    TakeAll(oneshot::Sender<Vec<Arc<HeldLease>>>),
}

/// Reports the outcome of a renewal to its caller.
pub(crate) type Asking = oneshot::Sender<Result<(), Error>>;

/// The task that renews all leases of a client and lets their deadlines fire.
///
/// It never waits for a store: renewals run concurrently. A renewal that fails, hangs or panics puts its
/// leases in doubt and does nothing else.
pub(crate) struct Renewer {
    context: Arc<ClientContext>,
    commands: mpsc::UnboundedReceiver<RenewerCommand>,
    /// The new leases, which the renewer does not renew yet.
    new_leases: Arc<NewLeases>,
    pending_attempts: Arc<PendingAttempts>,
    kept: HashMap<u64, Renewed>,
    timers: Timers,
    failed_renewals: FailedRenewals,
    renewals: FuturesUnordered<BoxFuture<'static, Batch>>,
}

#[derive(Debug)]
struct Renewed {
    lease: Arc<HeldLease>,
    timer: Option<BootInstant>,
    /// The mode of the renewal in progress. A renewal in the earlier mode may be in progress too. Its
    /// answer is ignored, because to that renewal a lease that is now shared is lost.
    renewing: Option<Mode>,
    asking: Vec<Asking>,
}

/// Renewals that were sent together, and their answers.
#[derive(Debug)]
struct Batch {
    sent: BootInstant,
    span: Span,
    watch: Option<Watch>,
    leases: Vec<(u64, Mode, RenewReply)>,
}

/// A renewal to be sent.
#[derive(Debug)]
struct Due {
    id: u64,
    held: Held,
    deadline: Option<BootInstant>,
}

impl Renewer {
    pub(crate) fn new(
        context: Arc<ClientContext>,
        commands: mpsc::UnboundedReceiver<RenewerCommand>,
        (new_leases, pending_attempts): (Arc<NewLeases>, Arc<PendingAttempts>),
    ) -> Self {
        Self {
            context,
            commands,
            new_leases,
            pending_attempts,
            kept: HashMap::new(),
            timers: Timers::default(),
            failed_renewals: FailedRenewals::default(),
            renewals: FuturesUnordered::new(),
        }
    }

    /// Renews leases until the client is gone.
    pub(crate) async fn run(mut self) {
        loop {
            let first = self.timers.first();
            let of_lists = [self.new_leases.due(), self.pending_attempts.due()];
            let next = of_lists.into_iter().flatten().chain(first).min();
            let clock = Arc::clone(&self.context.env.clock);
            let renew_now = Arc::clone(&self.context.renew_now);
            let alarm = async {
                match next {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // First, so that neither a flood of commands nor of answers delays a deadline.
                () = alarm => self.on_time(),
                command = self.commands.recv() => match command {
                    // The loop sets the alarm again.
                    Some(RenewerCommand::Look) => {}
                    Some(RenewerCommand::Renew(lease, asking)) => self.renew_one(lease, asking),
                    Some(RenewerCommand::Forget(id)) => self.forget(id),
                    // The caller may be gone. Its leases then end by themselves.
                    Some(RenewerCommand::TakeAll(report)) => drop(report.send(self.take_all())),
                    None => return,
                },
                () = renew_now.notified() => self.renew_all(),
                Some(batch) = self.renewals.next() => self.settle(batch),
            }
        }
    }

    fn keep(&mut self, lease: Arc<HeldLease>) {
        let id = lease.id;
        let mut kept = Renewed {
            lease,
            timer: None,
            renewing: None,
            asking: Vec::new(),
        };
        kept.schedule(id, &mut self.timers);
        self.kept.insert(id, kept);
    }

    fn renew_one(&mut self, lease: Arc<HeldLease>, asking: Asking) {
        let (id, now) = (lease.id, self.context.now());
        if self.new_leases.remove(&lease) {
            self.keep(Arc::clone(&lease));
        }
        let Some(kept) = self.kept.get_mut(&id) else {
            return;
        };
        if let Err(reason) = kept.lease.check(now) {
            return self.drop_lost(id, reason);
        }
        kept.asking.push(asking);
        // The answer to a renewal in the earlier mode is ignored.
        if kept.renewing != Some(kept.lease.request().mode) {
            let due = kept.begin_renewal(id, &mut self.timers);
            self.renew(now, vec![due]);
        }
    }

    fn forget(&mut self, id: u64) {
        if let Some(mut kept) = self.kept.remove(&id) {
            self.timers.set(id, &mut kept.timer, None);
            self.failed_renewals.remove(id);
        }
    }

    fn take_all(&mut self) -> Vec<Arc<HeldLease>> {
        let leases = self.kept.values().map(|kept| Arc::clone(&kept.lease));
        let leases: Vec<_> = leases.filter(|lease| !lease.is_over()).collect();
        leases.iter().for_each(|lease| self.forget(lease.id));
        leases
    }

    fn on_time(&mut self) {
        let now = self.context.now();
        self.release_unpolled(now);
        let is_soon = |due| due <= now + EARLY_MAX;
        if self.new_leases.due().is_some_and(is_soon) {
            for lease in self.new_leases.take_all() {
                self.keep(lease);
            }
        }
        for id in self.timers.end_watches(now) {
            if let Some(kept) = self.kept.get_mut(&id) {
                kept.schedule(id, &mut self.timers);
            }
        }
        // Renewals due within the window are sent together, in one message for many leases.
        let mut renewable = Vec::new();
        for id in self.timers.due(now + EARLY_MAX) {
            let Some(kept) = self.kept.get_mut(&id) else {
                continue;
            };
            if kept.lease.is_over() {
                self.forget(id);
                continue;
            }
            if let Err(reason) = kept.lease.check(now) {
                self.drop_lost(id, reason);
                continue;
            }
            if kept.renewing.is_none() && kept.lease.is_due(now) {
                renewable.push(kept.begin_renewal(id, &mut self.timers));
            } else {
                kept.schedule(id, &mut self.timers);
            }
        }
        self.renew_in_batches(now, renewable);
    }

    /// Releases the attempts that their callers no longer poll.
    fn release_unpolled(&self, now: BootInstant) {
        if self.pending_attempts.due().is_none_or(|due| now < due) {
            return;
        }
        for request in self.pending_attempts.overdue(now) {
            let context = Arc::clone(&self.context);
            let mut release = Release::of_attempt(&request, now);
            drop(background::spawn(async move {
                let outcome = release.until_answered(&context).await;
                tracing::warn!(key = %request.key, ?outcome, "released an attempt that was not polled");
            }));
        }
    }

    /// Renews all leases, also those of which a renewal is in progress: its answer may be older than the suspicion.
    fn renew_all(&mut self) {
        let now = self.context.now();
        for lease in self.new_leases.take_all() {
            self.keep(lease);
        }
        let kept = self.kept.iter_mut();
        let kept = kept.filter(|(_, kept)| !kept.lease.is_over());
        let due = kept.map(|(id, kept)| kept.begin_renewal(*id, &mut self.timers));
        let due = due.collect();
        self.renew_in_batches(now, due);
    }

    fn renew_in_batches(&mut self, now: BootInstant, mut renewable: Vec<Due>) {
        while !renewable.is_empty() {
            let rest = renewable.split_off(renewable.len().min(BATCH_MAX));
            self.renew(now, std::mem::replace(&mut renewable, rest));
        }
    }

    fn renew(&mut self, sent: BootInstant, batch: Vec<Due>) {
        let deadline = batch.iter().filter_map(|due| due.deadline).min();
        let watch = deadline.map(|deadline| {
            let ids = batch.iter().map(|due| due.id).collect();
            self.timers.watch(deadline, ids)
        });
        let batch = batch.into_iter();
        let (ids, leases): (Vec<(u64, Mode)>, Vec<Held>) = batch
            .map(|due| ((due.id, due.held.request.mode), due.held))
            .unzip();
        let shortest = leases
            .iter()
            .map(|held| held.request.usable_ttl())
            .min()
            .unwrap_or_default();
        let limit = sent + LockRequest::limit_of(shortest);
        self.look_for_waiters(&ids, limit);
        let session = Arc::clone(&self.context.session);
        let clock = Arc::clone(&self.context.env.clock);
        let span = spans::renewal(leases.len());
        let asking = async move { clock::within(&*clock, limit, session.renew(&leases)).await };
        let task = background::spawn(asking.instrument(span.clone()));
        self.renewals.push(Box::pin(async move {
            let answers = match task.await {
                Ok(Some(answers)) if answers.len() == ids.len() => answers,
                Ok(Some(_)) => all_unknown(
                    ids.len(),
                    ErrorKind::InvalidResponse,
                    "not one answer per lease",
                ),
                Ok(None) => all_unknown(ids.len(), ErrorKind::Unreachable, "no answer in time"),
                Err(_) => all_unknown(ids.len(), ErrorKind::Closed, "the renewal broke off"),
            };
            Batch {
                sent,
                span,
                watch,
                leases: ids
                    .into_iter()
                    .zip(answers)
                    .map(|((id, mode), answer)| (id, mode, answer))
                    .collect(),
            }
        }));
    }

    /// Reports locks that other clients began to wait for. Asks the store only if a program reads the events.
    fn look_for_waiters(&self, ids: &[(u64, Mode)], limit: BootInstant) {
        if !self.context.metrics.events.is_read() {
            return;
        }
        let leases = ids.iter().filter_map(|(id, _)| self.kept.get(id));
        let leases: Vec<_> = leases.map(|kept| Arc::clone(&kept.lease)).collect();
        let (session, metrics) = (
            Arc::clone(&self.context.session),
            Arc::clone(&self.context.metrics),
        );
        let clock = Arc::clone(&self.context.env.clock);
        drop(background::spawn(async move {
            let Some(inspection) = session.inspection() else {
                return;
            };
            let looks = leases.iter().map(async |lease| {
                let (key, fence) = lease.lock();
                // The next renewal looks again.
                let Ok(waiters) = inspection.waiters(key).await else {
                    return;
                };
                let waiters = waiters.len();
                if lease.contended(waiters) {
                    let key = key.clone();
                    let event = || LockEvent::Contended {
                        key,
                        fence,
                        waiters,
                    };
                    metrics.events.send(event);
                }
            });
            clock::within(&*clock, limit, join_all(looks)).await;
        }));
    }

    fn settle(&mut self, batch: Batch) {
        let now = self.context.now();
        let ends = batch.leases.iter().map(|(.., it)| RenewalEnd::of(it));
        spans::renewed(&batch.span, ends.clone());
        ends.for_each(|end| self.context.metrics.renewed(end, now.since(batch.sent)));
        if let Some(watch) = batch.watch {
            self.timers.unwatch(watch);
        }
        for (id, mode, answer) in batch.leases {
            let Some(kept) = self.kept.get_mut(&id) else {
                continue;
            };
            kept.renewing.take_if(|renewing| *renewing == mode);
            self.failed_renewals.hear(id, &answer);
            let verdict = if kept.lease.is_still_in(mode) {
                kept.settle(answer, now)
            } else {
                Ok(())
            };
            match verdict {
                Ok(()) => kept.schedule(id, &mut self.timers),
                Err(reason) => self.drop_lost(id, reason),
            }
        }
        self.failed_renewals.log(&*self.context.store);
    }

    fn drop_lost(&mut self, id: u64, reason: LostReason) {
        if let Some(kept) = self.kept.get(&id) {
            let (event, key) = (LogEvent::Lost.as_str(), &kept.lease.request().key);
            tracing::warn!(event, %key, %reason, "lost");
        }
        self.forget(id);
    }
}

impl Renewed {
    /// Sets the lease's timer to its deadline or its renewal, whichever is first. While a renewal is in
    /// progress, only the deadline counts.
    fn schedule(&mut self, id: u64, timers: &mut Timers) {
        let at = match self.renewing {
            Some(_) => self.lease.deadline(),
            None => self.lease.next_event(),
        };
        timers.set(id, &mut self.timer, at);
    }

    /// Begins a renewal and returns it. One watch covers its deadline and those of its batch.
    fn begin_renewal(&mut self, id: u64, timers: &mut Timers) -> Due {
        timers.set(id, &mut self.timer, None);
        let held = self.lease.held();
        self.renewing = Some(held.request.mode);
        self.lease.renewing();
        let deadline = self.lease.deadline();
        Due { id, held, deadline }
    }

    /// Handles the answer to a renewal in the mode that the lease still has.
    fn settle(&mut self, answer: RenewReply, now: BootInstant) -> Result<(), LostReason> {
        let (verdict, outcome) = match answer {
            RenewReply::Lost(reason) => return Err(self.lease.lose(reason, now)),
            RenewReply::Renewed(term) => (self.lease.renewed(term, now), Ok(())),
            RenewReply::Unknown(error) => {
                let key = &self.lease.request().key;
                tracing::debug!(%key, %error, "renewal failed: in doubt until the deadline");
                (self.lease.uncertain(now), Err(error.with_key(key)))
            }
        };
        verdict?;
        for asking in self.asking.drain(..) {
            // The send fails if the caller is gone.
            let _ = asking.send(outcome.clone().map_err(Error::with_unknown_effect));
        }
        Ok(())
    }
}

fn all_unknown(count: usize, kind: ErrorKind, message: &str) -> Vec<RenewReply> {
    let error = Error::new(kind, message).with_unknown_effect();
    vec![RenewReply::Unknown(error); count]
}

/// The largest number of leases that one message renews.
const BATCH_MAX: usize = 128;
