use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use leasehold::clock::{BootInstant, Clock as _, SystemClock, within};
use leasehold::env::Env;
use leasehold::store::{Attempt, Claim, ClientInfo, Expiry, Held, Owner, Renewal, Store};
use leasehold::{Error, ErrorKind, Key};

use super::cycles::{proc_stats, spread, vanished};
use super::estimate::Bound;
use super::plan::{Part, Plan};
use super::statistics::{Spread, per_second};
use crate::output::failure::Failure;

/// Locks that are held, and renewed as fast as the store does it.
#[derive(Debug)]
pub(super) struct Renewals {
    pub(super) locks: usize,
    /// The message that renews [`TOGETHER`] of them.
    pub(super) message: Spread,
    pub(super) per_second: f64,
    pub(super) bound: Bound,
}

/// How many leases a message renews, as those of a client's renewer do.
pub(super) const TOGETHER: usize = 128;

/// Leases that come from the store directly, because a client does not renew before it must.
#[derive(Debug)]
pub(super) struct Leases {
    store: Arc<dyn Store>,
    client: Arc<ClientInfo>,
    env: Env,
    /// All that may be held, from before it is asked for.
    claims: RefCell<Vec<Arc<Claim>>>,
}

impl Leases {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let env = Env::default();
        let client = ClientInfo::of_this_process(&env, Some("leasehold".into()));
        Self {
            store,
            client: Arc::new(client),
            env,
            claims: RefCell::default(),
        }
    }

    /// Whether leases of this store end, and are renewed.
    pub(super) fn are_renewed(&self) -> bool {
        self.store.guarantees().expiry == Expiry::Lease
    }

    pub(super) async fn measure(&self, plan: &Plan) -> Result<Renewals, Failure> {
        let end = plan.end(Part::Renewals);
        let whole = plan.span(Part::Renewals);
        let held = self.take(plan, end - whole * 2 / 3).await?;
        let batches: Vec<&[Held]> = held.chunks(TOGETHER).collect();
        let alone = match batches.first() {
            Some(first) => self.renew(first, end - whole / 3).await?,
            None => Vec::new(),
        };
        let alone = spread(alone)?;
        let proc_stats = proc_stats()?;
        let began = SystemClock.now();
        let renewing = batches.iter().map(|batch| async {
            let spans = self.renew(batch, end).await?;
            Ok::<_, Failure>((batch.len() * spans.len(), spans))
        });
        let all = try_join_all(renewing).await?;
        let took = SystemClock.now().since(began);
        let cpu_usage = proc_stats.until(&self::proc_stats()?);
        let renewed = all.iter().map(|(renewed, _)| renewed).sum();
        let message = spread(all.into_iter().flat_map(|(_, spans)| spans).collect())?;
        Ok(Renewals {
            locks: held.len(),
            message,
            per_second: per_second(renewed, took),
            bound: Bound::of(cpu_usage, alone, message),
        })
    }

    /// Acquires the locks, or as many as it can before `end`, but at least one.
    async fn take(&self, plan: &Plan, end: BootInstant) -> Result<Vec<Held>, Failure> {
        let names: Vec<String> = plan.renewed().collect();
        let mut held = Vec::new();
        for names in names.chunks(plan.in_flight) {
            held.extend(try_join_all(names.iter().map(|name| self.acquire(name, plan))).await?);
            if SystemClock.now() >= end {
                break;
            }
        }
        Ok(held)
    }

    async fn acquire(&self, name: &str, plan: &Plan) -> Result<Held, Failure> {
        let wall = SystemClock.wall();
        let claim = Arc::new(Claim::new(
            Key::new(name)?,
            Owner::at(self.client.id, wall, &*self.env.entropy),
            plan.ttl,
            wall,
            Arc::clone(&self.client),
        ));
        self.claims.borrow_mut().push(Arc::clone(&claim));
        match self.store.acquire(&claim).await? {
            Attempt::Granted(grant) => Ok(Held {
                claim,
                fence: grant.fence,
            }),
            Attempt::Busy(_) => {
                let taken = Error::new(ErrorKind::Busy, "another client holds the lock");
                Err(taken.with_key(&claim.key).into())
            }
        }
    }

    /// Renews `leases` again and again; how long each message took.
    async fn renew(&self, leases: &[Held], end: BootInstant) -> Result<Vec<Duration>, Failure> {
        let mut spans = Vec::new();
        loop {
            let sent = SystemClock.now();
            let answers = self.store.renew(leases).await;
            let answered = SystemClock.now();
            spans.push(answered.since(sent));
            for (lease, answer) in leases.iter().zip(answers) {
                match answer {
                    Renewal::Renewed => {}
                    Renewal::Lost(_) => return Err(vanished(lease.claim.key.as_str())),
                    Renewal::Unknown(error) => return Err(error.into()),
                }
            }
            if answered >= end {
                return Ok(spans);
            }
        }
    }

    /// Releases everything. A lease whose release the store does not confirm in time expires.
    pub(super) async fn free(&self) {
        let claims = self.claims.take();
        let freeing = async {
            for claims in claims.chunks(TOGETHER) {
                join_all(claims.iter().map(|claim| self.store.release(claim))).await;
            }
            self.store.flush().await;
        };
        within(&SystemClock, SystemClock.now() + FREE_MAX, freeing).await;
    }
}

const FREE_MAX: Duration = Duration::from_secs(3);
