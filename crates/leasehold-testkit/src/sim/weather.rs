use std::sync::Arc;
use std::time::Duration;

use leasehold::background;

use super::chance::Chance;
use super::faults::FaultClass;
use super::plan::Plan;
use super::server::{Comeback, Condition, Server};
use super::world::World;

/// What goes wrong in a world while its clients work.
pub(crate) struct Weather {
    world: Arc<World>,
    chance: Chance,
    /// The faults that come and go; the others are there from the beginning.
    coming: Vec<FaultClass>,
}

impl Weather {
    pub(crate) fn new(world: Arc<World>, chance: Chance) -> Self {
        let coming = [
            FaultClass::Freeze,
            FaultClass::Slow,
            FaultClass::Crash,
            FaultClass::RestartStale,
            FaultClass::RestartEmpty,
            FaultClass::Flush,
            FaultClass::FlushAll,
            FaultClass::ClockSteps,
            FaultClass::Partition,
            FaultClass::Pause,
            FaultClass::FrozenClock,
            FaultClass::ClientCrash,
        ];
        let coming = coming.into_iter().filter(|class| world.plan.has(*class));
        Self {
            coming: coming.collect(),
            world,
            chance,
        }
    }

    pub(crate) async fn rage(&self) {
        if self.coming.is_empty() {
            return std::future::pending().await;
        }
        let calm = self.world.plan.calm.as_millis() as u64;
        loop {
            let pause = self.chance.millis(0, calm * 2);
            self.world.timeline.sleep(pause).await;
            self.strike(*self.chance.pick(&self.coming));
        }
    }

    fn strike(&self, class: FaultClass) {
        match class {
            FaultClass::Freeze => self.freeze(),
            FaultClass::Slow => self.slow_down(),
            FaultClass::Crash => self.crash(Comeback::Complete),
            FaultClass::RestartStale => self.crash(Comeback::Stale),
            FaultClass::RestartEmpty => self.crash(Comeback::Empty),
            FaultClass::Flush => self.flush(),
            FaultClass::FlushAll => self.world.servers.iter().for_each(|server| server.flush()),
            FaultClass::ClockSteps => self.step(),
            FaultClass::Partition => self.part(),
            FaultClass::Pause => self.pause(false),
            FaultClass::FrozenClock => self.pause(true),
            FaultClass::ClientCrash => self.replace_client(),
            _ => {}
        }
    }

    /// Flushes servers, but not the last one that has its card.
    fn flush(&self) {
        let victims: Vec<usize> = self.victims().map(|server| server.number).collect();
        let set = &self.world.servers[..self.world.plan.servers];
        let is_victim = |server: &&Arc<Server>| victims.contains(&server.number);
        if set
            .iter()
            .any(|server| !is_victim(&server) && server.has_card())
        {
            let victims = self.world.servers.iter().filter(is_victim);
            victims.for_each(|server| server.flush());
        }
    }

    fn freeze(&self) {
        let server = Arc::clone(self.pick_server());
        server.freeze();
        self.later(self.span(), move || server.thaw());
    }

    fn slow_down(&self) {
        let server = self.pick_server().number;
        let by = self.chance.millis(5, 250);
        let slow = move |world: &World, by| {
            let wires = world.wires().into_iter();
            let slow = wires.filter(|wire| wire.server().number == server);
            slow.for_each(|wire| wire.slow_down(by));
        };
        self.world
            .history
            .note(format!("server {server} is slow by {by:?}"));
        slow(&self.world, by);
        let world = Arc::clone(&self.world);
        self.later(self.span(), move || slow(&world, Duration::ZERO));
    }

    fn crash(&self, how: Comeback) {
        for server in self.victims() {
            if server.condition() != Condition::Up {
                continue;
            }
            server.crash(self.chance.percent(70));
            let span = if self.chance.percent(70) {
                self.chance.millis(1, 500)
            } else {
                self.span()
            };
            let server = Arc::clone(server);
            self.later(span, move || server.come_back(how));
        }
    }

    /// Moves the clock of one of a minority: of a majority that moves together nobody could tell
    /// that it was not the rest of the world. It stays so for the longest TTL at least: nobody who
    /// did not ask meanwhile could tell that it was stepped and stepped back.
    fn step(&self) {
        let minority = (self.world.servers.len() - 1) / 2;
        let server = Arc::clone(&self.world.servers[self.chance.below(minority)]);
        if server.machine.wall_offset().abs() > 100_000 {
            return;
        }
        let most = *self.chance.pick(&[90_000, 400_000, 3_000_000, 20_000_000]);
        server.step(self.chance.around_zero(most));
        if self.chance.percent(50) {
            self.later(Plan::MAX_TTL + self.span(), move || {
                server.step(-server.machine.wall_offset());
            });
        }
    }

    fn part(&self) {
        let wires = self.world.wires();
        if wires.is_empty() {
            return;
        }
        let wire = self.chance.pick(&wires);
        let (there, back) = *self
            .chance
            .pick(&[(true, true), (true, false), (false, true)]);
        let span = self.span();
        let (client, server) = (wire.client(), wire.server().number);
        let text =
            format!("client {client} is cut off from server {server}: {there} {back} {span:?}");
        self.world.history.note(text);
        wire.cut(span, there, back);
    }

    fn pause(&self, frozen: bool) {
        if let Some(client) = self.world.pause_client(&self.chance, frozen) {
            let world = Arc::clone(&self.world);
            self.later(self.span(), move || world.wake_client(&client));
        }
    }

    /// Crashes a client; somewhere another one starts.
    fn replace_client(&self) {
        let mut living = self.world.living();
        living.retain(|peer| !peer.is_outsider);
        if living.is_empty() {
            return;
        }
        let killed = self.chance.percent(50);
        self.world.crash_client(self.chance.pick(&living), killed);
        let (world, span) = (Arc::clone(&self.world), self.chance.millis(0, 2_000));
        background::spawn(async move {
            world.timeline.sleep(span).await;
            if !world.is_calm() {
                let peer = world.add_client(false).await;
                world.employ(&peer);
            }
        });
    }

    /// One server, or several at once as when the power fails.
    fn victims(&self) -> impl Iterator<Item = &Arc<Server>> {
        let several = self.chance.percent(20);
        let one = self.pick_server().number;
        let servers = self.world.servers.iter();
        servers.filter(move |server| server.number == one || several && self.chance.percent(70))
    }

    fn pick_server(&self) -> &Arc<Server> {
        self.chance.pick(&self.world.servers)
    }

    /// Mostly short, sometimes longer than any lease.
    fn span(&self) -> Duration {
        let longest = *self.chance.pick(&[150, 1_200, 3_000, 7_000]);
        self.chance.millis(10, longest)
    }

    fn later(&self, span: Duration, end: impl FnOnce() + Send + 'static) {
        let world = Arc::clone(&self.world);
        background::spawn(async move {
            world.timeline.sleep(span).await;
            // Afterwards all is set right already.
            if !world.is_calm() {
                end();
            }
        });
    }
}
