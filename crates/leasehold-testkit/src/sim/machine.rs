use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use leasehold::BoxFuture;
use leasehold::clock::{BootInstant, Clock, WallTime};
use tokio::sync::Notify;

use super::gate::Gate;
use super::timeline::Timeline;
use crate::virtual_time::lock;

/// A computer, as its programs see it: clocks of its own, and now and then it stands still.
///
/// Its spans are those of the timeline times its rate. While it is paused no sleep on it ends.
#[derive(Clone)]
pub(crate) struct Machine(Arc<Inner>);

struct Inner {
    timeline: Timeline,
    /// Leases end by the wall clock, as on Redis.
    leases_by_wall: bool,
    state: Mutex<State>,
    awake: Gate,
    jumped: Notify,
}

#[derive(Debug)]
struct State {
    /// How much faster than the timeline, in millionths.
    rate: i64,
    /// By how many microseconds the wall clock is off.
    wall_offset: i64,
    stopped_wall: Option<WallTime>,
    /// What the clock of spans was told to leap in all.
    leapt: Duration,
    /// Since when the clocks stand still.
    frozen: Option<Duration>,
    /// For how long they stood still before.
    missed: Duration,
}

/// 2026-11-20, more or less.
const WALL_START_MICROS: u64 = 1_795_000_000_000_000;

/// The machine has been up for a while, as machines have.
const BOOTED: BootInstant = BootInstant::from_nanos(1_000_000_000_000);

/// How long a timer sleeps before it reads the clock again, as those of the system clock.
const TICK: Duration = Duration::from_millis(250);

impl Machine {
    /// One whose clocks run `rate` millionths too fast, and whose wall clock is `wall_offset`
    /// microseconds ahead.
    pub(crate) fn new(timeline: Timeline, rate: i64, wall_offset: i64) -> Self {
        Self::build(timeline, rate, wall_offset, false)
    }

    /// One on which leases end by the wall clock.
    pub(crate) fn server(timeline: Timeline, rate: i64, wall_offset: i64) -> Self {
        Self::build(timeline, rate, wall_offset, true)
    }

    fn build(timeline: Timeline, rate: i64, wall_offset: i64, leases_by_wall: bool) -> Self {
        let state = State {
            rate,
            wall_offset,
            stopped_wall: None,
            leapt: Duration::ZERO,
            frozen: None,
            missed: Duration::ZERO,
        };
        Self(Arc::new(Inner {
            timeline,
            leases_by_wall,
            state: Mutex::new(state),
            awake: Gate::new(true),
            jumped: Notify::new(),
        }))
    }

    /// Lets the wall clock stand still from now on, and nothing else.
    pub(crate) fn stop_wall(&self) {
        let wall = self.wall();
        self.state().stopped_wall = Some(wall);
    }

    /// Moves the wall clock by so many microseconds.
    pub(crate) fn step(&self, micros: i64) {
        self.state().wall_offset += micros;
    }

    /// By how many microseconds the wall clock was moved, or wrong from the start.
    pub(crate) fn wall_offset(&self) -> i64 {
        self.state().wall_offset
    }

    /// Stops all that runs here; the clocks too, if `frozen`.
    pub(crate) fn pause(&self, frozen: bool) {
        self.0.awake.shut();
        if frozen {
            let now = self.0.timeline.now();
            self.state().frozen.get_or_insert(now);
        }
    }

    /// Lets it go on. A wall clock that stood still is set right by the host.
    pub(crate) fn wake(&self) {
        let now = self.0.timeline.now();
        {
            let mut state = self.state();
            if let Some(since) = state.frozen.take() {
                let span = now - since;
                state.missed += span;
                state.wall_offset += span.as_micros() as i64;
            }
        }
        self.0.awake.open();
        self.0.jumped.notify_waiters();
    }

    /// Whether its clock of spans ever stood still.
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.state();
        state.frozen.is_some() || state.missed > Duration::ZERO
    }

    pub(crate) fn is_awake(&self) -> bool {
        self.0.awake.is_open()
    }

    /// Resolves once nothing is paused here.
    pub(crate) async fn awake(&self) {
        self.0.awake.pass().await;
    }

    /// Resolves when the clock of spans has leapt, or the machine woke up.
    pub(crate) async fn jumped(&self) {
        self.0.jumped.notified().await;
    }

    pub(crate) async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now() + span).await;
    }

    /// When on the timeline the clock of spans will show `local`, if nothing disturbs it.
    pub(crate) fn on_timeline(&self, local: BootInstant) -> Duration {
        let state = self.state();
        if self.0.leases_by_wall {
            let now = self.0.timeline.now();
            let wall = wall_at(&state, now).as_micros() as i128 * 1_000;
            let ahead = local.as_nanos() as i128 - wall;
            let nanos =
                now.as_nanos() as i128 + ahead * 1_000_000 / (1_000_000 + state.rate as i128);
            return Duration::from_nanos(nanos.max(0) as u64);
        }
        let running = unscaled(local.since(BOOTED + state.leapt), state.rate);
        running + state.missed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

fn running(state: &State, now: Duration) -> Duration {
    state.frozen.unwrap_or(now) - state.missed
}

fn wall_at(state: &State, now: Duration) -> WallTime {
    let micros = scaled(running(state, now), state.rate).as_micros() as i64;
    WallTime::from_micros((WALL_START_MICROS as i64 + micros + state.wall_offset) as u64)
}

fn scaled(span: Duration, rate: i64) -> Duration {
    let nanos = span.as_nanos() as i128;
    Duration::from_nanos((nanos * (1_000_000 + rate as i128) / 1_000_000) as u64)
}

/// Rounded up, so that a sleep never ends early.
fn unscaled(span: Duration, rate: i64) -> Duration {
    let (nanos, rate) = (span.as_nanos() as i128, 1_000_000 + rate as i128);
    Duration::from_nanos(((nanos * 1_000_000 + rate - 1) / rate) as u64)
}

impl Clock for Machine {
    fn now(&self) -> BootInstant {
        let now = self.0.timeline.now();
        let state = self.state();
        if self.0.leases_by_wall {
            return BootInstant::from_nanos(wall_at(&state, now).as_micros() * 1_000);
        }
        BOOTED + scaled(running(&state, now), state.rate) + state.leapt
    }

    fn wall(&self) -> WallTime {
        let state = self.state();
        state
            .stopped_wall
            .unwrap_or_else(|| wall_at(&state, self.0.timeline.now()))
    }

    fn sleep_until(&self, deadline: BootInstant) -> BoxFuture<'static, ()> {
        let machine = self.clone();
        Box::pin(async move {
            loop {
                machine.awake().await;
                let left = deadline.since(machine.now());
                if left.is_zero() {
                    return;
                }
                let rate = machine.state().rate;
                machine
                    .0
                    .timeline
                    .sleep(unscaled(left.min(TICK), rate))
                    .await;
            }
        })
    }

    fn stood_still(&self, span: Duration) {
        self.state().leapt += span;
        self.0.jumped.notify_waiters();
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(timeline: Timeline, millis: u64) {
        timeline.sleep(Duration::from_millis(millis)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_clock_is_ahead_and_knows_the_timeline() {
        let timeline = Timeline::begin();
        let machine = Machine::new(timeline, 40_000, 0);
        let began = machine.now();
        pass(timeline, 1_000).await;
        assert_eq!(machine.now().since(began), Duration::from_millis(1_040));
        let later = machine.now() + Duration::from_millis(1_040);
        assert_eq!(machine.on_timeline(later), Duration::from_secs(2));
        machine.sleep_until(later).await;
        assert!(machine.now() >= later && timeline.now() <= Duration::from_millis(2_001));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_sleeps_up_and_stops_the_clock_only_if_told() {
        let timeline = Timeline::begin();
        for frozen in [false, true] {
            let machine = Machine::new(timeline, 0, 0);
            let (began, wall) = (machine.now(), machine.wall());
            machine.pause(frozen);
            let (waking, until) = (machine.clone(), began + Duration::from_millis(100));
            let sleeping = async { machine.sleep_until(until).await };
            let waking = async {
                pass(timeline, 1_000).await;
                waking.wake();
                waking.now()
            };
            let ((), woke_at) = tokio::join!(sleeping, waking);
            let stood = if frozen { 0 } else { 1_000 };
            assert_eq!(woke_at.since(began), Duration::from_millis(stood));
            assert_eq!(machine.is_behind(), frozen);
            let passed = machine.wall().as_micros() - wall.as_micros();
            assert_eq!(passed, if frozen { 1_100_000 } else { 1_000_000 });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn leases_of_a_server_end_by_its_stepped_clock() {
        let timeline = Timeline::begin();
        let server = Machine::server(timeline, 0, 0);
        let end = server.now() + Duration::from_secs(10);
        assert_eq!(server.on_timeline(end), Duration::from_secs(10));
        server.step(4_000_000);
        assert_eq!(server.on_timeline(end), Duration::from_secs(6));
    }
}
