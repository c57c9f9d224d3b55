use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::background;

use super::chance::Chance;
use super::checks::{self, Violation};
use super::faults::{FaultClass, Faults};
use super::grants::Grants;
use super::history::{Event, What, fingerprint};
use super::plan::Plan;
use super::weather::Weather;
use super::workload::key_name;
use super::world::{Peer, World};

/// What came of one seed.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The faults that this world had.
    pub faults: Faults,
    /// The faults that it might have had.
    pub allowed: Faults,
    /// What must not have happened.
    pub violations: Vec<Violation>,
    /// The same for the same history.
    pub fingerprint: u64,
    /// The locks that were granted.
    pub grants: Grants,
    events: Vec<Event>,
}

impl Outcome {
    /// All that happened, one line each, and what was broken by it.
    pub fn trace(&self) -> impl Iterator<Item = String> {
        let events = self.events.iter().map(ToString::to_string);
        events.chain(self.violations.iter().map(ToString::to_string))
    }
}

/// What it broke, and the command that shows how.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            faults,
            allowed,
            ..
        } = self;
        writeln!(f, "seed {seed} ({faults}):")?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        write!(
            f,
            "  again: cargo xtask sim --seed {seed} --faults {allowed} --trace"
        )
    }
}

/// Lets the world of `seed` run to its end, and judges what happened in it.
///
/// # Panics
///
/// Within another tokio runtime.
pub fn run(seed: u64, allowed: Faults) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let chance = Chance::new(seed, 0);
    let plan = Plan::draw(
        &chance,
        &Chance::new(seed, MIXING),
        &Chance::new(seed, PACING),
        allowed,
    );
    let events = runtime.block_on(live(seed, plan.clone(), chance));
    Outcome {
        seed,
        faults: plan.faults,
        allowed,
        violations: checks::all(&events),
        fingerprint: fingerprint(&events),
        grants: Grants::of(&events),
        events,
    }
}

async fn live(seed: u64, plan: Plan, chance: Chance) -> Vec<Event> {
    let world = Arc::new(World::new(seed, plan));
    let (plan, timeline) = (&world.plan, world.timeline);
    world.history.note(format!("{plan:?}"));
    for number in 0..plan.clients {
        let is_outsider = plan.has(FaultClass::OtherSet) && number + 1 == plan.clients;
        let peer = world.add_client(is_outsider).await;
        world.employ(&peer);
    }
    let weather = Weather::new(Arc::clone(&world), chance.clone());
    if plan.faults == Faults::NONE {
        world.history.add(What::Cleared);
        foresee_calm(&world);
    }
    tokio::select! {
        biased;
        () = weather.rage() => {}
        () = timeline.sleep(plan.span) => {}
    }
    world.clear_up();
    if plan.faults != Faults::NONE {
        foresee_calm(&world);
    }
    if plan.peace > Duration::ZERO {
        timeline.sleep(OLD_ENOUGH + plan.peace / 4).await;
        if plan.has(FaultClass::ClientCrash) {
            lose_one(&world, &chance);
        }
        timeline.sleep(plan.peace * 3 / 4).await;
    }
    world.work.end();
    world.dismiss().await;
    world.history.add(What::Quiet);
    settle(&world).await;
    if plan.is_live() {
        probe(&world, &chance).await;
    }
    rest(&world).await;
    world.history.take()
}

/// Lets a client die that may hold a lock, or wait for one: the others go on without it.
fn lose_one(world: &World, chance: &Chance) {
    let living = world.living();
    if living.len() > 1 {
        world.crash_client(chance.pick(&living), chance.percent(50));
    }
}

/// Tells of the moment from which on nothing is in the way of anybody, if it comes.
fn foresee_calm(world: &Arc<World>) {
    if world.plan.is_calm_in_the_end() {
        let world = Arc::clone(world);
        background::spawn(async move {
            world.timeline.sleep(OLD_ENOUGH).await;
            world.history.add(What::Calm);
        });
    }
}

/// Waits until nothing may be held any more, and looks what is.
async fn settle(world: &World) {
    let now = world.timeline.now();
    let stands = world
        .servers
        .iter()
        .flat_map(|server| server.ledger.stands());
    let last = stands.flatten().map(|stand| stand.until).max();
    let until = if world.plan.faults == Faults::NONE {
        now + AT_ONCE
    } else {
        last.unwrap_or(now).min(now + LONGEST) + AT_ONCE
    };
    world.timeline.sleep_until(until).await;
    world.history.add(What::Settled);
    tell_queued(world);
    for server in &world.servers {
        for (key, stands) in server.ledger.stands().into_iter().enumerate() {
            for stand in stands {
                world.history.add(What::Left {
                    server: server.number,
                    key,
                    owner: Some(stand.owner),
                });
            }
        }
    }
}

/// Waits until queues are forgotten that nobody came back to, and looks at them.
async fn rest(world: &World) {
    world.timeline.sleep(QUEUE_LIFE).await;
    world.history.add(What::Rested);
    tell_queued(world);
}

fn tell_queued(world: &World) {
    for server in &world.servers {
        for (key, waiters) in server.ledger.queues().into_iter().enumerate() {
            for waiter in waiters {
                world.history.add(What::Queued {
                    server: server.number,
                    key,
                    waiter,
                });
            }
        }
    }
}

/// Asks for every lock while nothing but a dead minority is in the way.
async fn probe(world: &World, chance: &Chance) {
    let set = &world.servers[..world.plan.servers];
    let minority = (set.len() - 1) / 2;
    if set.iter().filter(|server| server.has_card()).count() <= minority {
        world
            .history
            .note("the set is gone from a majority of its members");
        return;
    }
    let veteran = world.living().into_iter().find(|peer| !peer.is_outsider);
    let guest = world.add_client(false).await;
    // Members that restarted unnoticed are old enough only some time after somebody noticed; and after
    // the client itself did whose clocks stood still: to it they restarted before it saw them last.
    let looks = |peer: &&Peer| !world.plan.has(FaultClass::Idle) || peer.machine.is_behind();
    let mut awake = vec![&guest];
    awake.extend(veteran.as_ref().filter(looks));
    for _ in 0..2 {
        for peer in &awake {
            let lock = peer.client.lock("probe").ttl(Plan::TTLS[0]);
            let outcome = lock.try_acquire().await;
            world.history.note(format!("a first look: {outcome:?}"));
            drop(outcome);
            world.timeline.sleep(Duration::from_millis(200)).await;
        }
    }
    world.timeline.sleep(OLD_ENOUGH).await;
    for server in &set[..minority] {
        match chance.below(3) {
            0 => server.freeze(),
            1 => server.crash(chance.percent(50)),
            _ => {}
        }
    }
    let newcomer = world.add_client(false).await;
    let veteran = veteran.unwrap_or(guest);
    for client in [&newcomer, &veteran] {
        for key in 0..world.plan.mix.keys() {
            try_one(world, client, key, AT_ONCE).await;
        }
    }
    let ttl = Plan::TTLS[1];
    let lock = newcomer.client.lock(key_name(0)).ttl(ttl).wait(AT_ONCE);
    let held = lock.acquire().await;
    world.crash_client(&newcomer, chance.percent(50));
    try_one(world, &veteran, 0, ttl + AT_ONCE).await;
    drop(held);
}

async fn try_one(world: &World, peer: &Peer, key: usize, allowed: Duration) {
    let began = world.timeline.now();
    let lock = peer
        .client
        .lock(key_name(key))
        .wait(allowed)
        .ttl(Plan::TTLS[1]);
    let granted = match lock.acquire().await {
        Ok(guard) => {
            let granted = guard.is_valid();
            let _ = guard.release().await;
            granted
        }
        Err(error) => {
            world.history.note(format!("probe: {error}"));
            false
        }
    };
    let took = world.timeline.now() - began;
    world.history.add(What::Probed {
        key,
        granted,
        took,
        allowed,
    });
}

/// The stream from which it is drawn what locks are used for.
const MIXING: u64 = 0x5_0000;

/// And the one for when they are asked for, and how long they are held.
const PACING: u64 = 0x7_0000;

/// Enough for some attempts, one of them with silent members.
const AT_ONCE: Duration = Duration::from_millis(1_500);

/// Until then a lease may stand that was put where a clock was then set back.
const LONGEST: Duration = Duration::from_secs(60);

/// So long the queue of a key is kept after it was last asked for, and a second more.
const QUEUE_LIFE: Duration = Duration::from_secs(31);

/// Members that restarted, or whose clocks were moved, count again.
const OLD_ENOUGH: Duration = Duration::from_secs(8);
