use std::sync::Arc;
use std::time::Duration;

use leasehold::ambient::{Ambient, SystemEntropy};
use leasehold::clock::{Clock, SystemClock, WallTime, within};
use leasehold::{
    Attempt, Busy, Claim, ClientInfo, Departure, Error, Grant, Heard, Hint, Inspection as _, Key,
    Member, Mode, Owner, Permits, Release, Renewal, Slot, Store, Ticket, Turn, Word,
};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{LIMIT, RedisServer, Reply};
use tokio::sync::{Mutex, mpsc};

pub(super) const QUEUE: &str = "leasehold:queue:{deploy}:deploy";
pub(super) const OFFERED: &str = "leasehold:offered:{deploy}:deploy";

/// A client of its own with a member of its own, which remembers what it hears.
pub(super) struct Party {
    pub(super) member: RedisMember,
    pub(super) client: Arc<ClientInfo>,
    heard: Mutex<mpsc::UnboundedReceiver<Heard>>,
}

/// A wait for the lock `deploy`, which lives over many attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    pub(super) mode: Mode,
}

impl Party {
    pub(super) fn at(server: &RedisServer) -> Self {
        Self::of(RedisMember::new(server.url()).unwrap())
    }

    pub(super) fn of(member: RedisMember) -> Self {
        let (speak, heard) = mpsc::unbounded_channel();
        member.listen(Box::new(move |word| speak.send(word).is_ok()));
        let program = Some("a party".to_owned());
        let client = ClientInfo::of_this_process(&Ambient::default(), program);
        Self {
            member,
            client: Arc::new(client),
            heard: Mutex::new(heard),
        }
    }

    /// A wait that began `since` microseconds after 1970.
    pub(super) fn since(&self, since: u64) -> Waiting {
        Waiting {
            ticket: Ticket {
                since: WallTime::from_micros(since),
                waiter: Owner::random(self.client.id, &SystemEntropy),
            },
            mode: Mode::Exclusive,
        }
    }

    /// A claim of a new owner.
    pub(super) fn claim(&self, mode: Mode) -> Claim {
        let wall = SystemClock.wall();
        Claim::new(
            Key::new("deploy").unwrap(),
            Owner::at(self.client.id, wall, &SystemEntropy),
            Duration::from_secs(60),
            wall,
            Arc::clone(&self.client),
        )
        .with_mode(mode)
    }

    /// Takes the lock without a turn.
    pub(super) async fn takes(&self, mode: Mode) -> Claim {
        let claim = self.claim(mode);
        crate::support::granted(&self.member, &claim).await;
        claim
    }

    /// Shares with others what it holds alone.
    pub(super) async fn makes_shared(&self, claim: &Claim, grant: &Grant) {
        let shared = claim.clone().with_mode(Mode::Shared);
        let lease = crate::support::held(&shared, grant);
        let renewed = self.member.renew(&[lease]).await;
        assert!(matches!(renewed[..], [Renewal::Renewed]), "{renewed:?}");
    }

    pub(super) async fn asks(&self, waiting: Waiting) -> Result<(Claim, Attempt), Error> {
        let claim = self.claim(waiting.mode);
        let turn = Turn::Queued(waiting.ticket);
        let attempt = self.member.acquire_in_turn(&claim, &turn).await?;
        Ok((claim, attempt))
    }

    /// Asks in turn for this very permit.
    pub(super) async fn asks_for(&self, waiting: Waiting, slot: u32) -> (Claim, Attempt) {
        let Mode::Permit(permits) = waiting.mode else {
            panic!("{waiting:?}")
        };
        let claim = self.claim(waiting.mode);
        let claim = claim.with_slot(Slot::new(slot, permits).unwrap());
        let turn = Turn::Queued(waiting.ticket);
        let attempt = self.member.acquire_in_turn(&claim, &turn).await;
        (claim, attempt.unwrap())
    }

    pub(super) async fn granted(&self, waiting: Waiting) -> (Claim, Grant) {
        match self.asks(waiting).await {
            Ok((claim, Attempt::Granted(grant))) => (claim, grant),
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Asks in turn and is queued.
    pub(super) async fn busy(&self, waiting: Waiting) -> Busy {
        match self.asks(waiting).await {
            Ok((_, Attempt::Busy(busy))) => busy,
            other => panic!("not busy: {other:?}"),
        }
    }

    pub(super) async fn barges(&self, mode: Mode) -> (Claim, Attempt) {
        let claim = self.claim(mode);
        let attempt = self.member.acquire_in_turn(&claim, &Turn::Barging).await;
        (claim, attempt.unwrap())
    }

    pub(super) async fn departs(&self, claim: &Claim, departure: Departure) -> Release {
        self.member.depart(claim, &departure).await.unwrap()
    }

    pub(super) async fn releases(&self, claim: &Claim) {
        crate::support::released(&self.member, claim).await;
    }

    pub(super) async fn leaves(&self, waiting: Waiting) {
        let key = Key::new("deploy").unwrap();
        let left = self.member.leave_queue(&key, waiting.ticket.waiter).await;
        left.unwrap();
    }

    /// The next thing that is heard.
    pub(super) async fn hears(&self) -> Heard {
        let mut heard = self.heard.lock().await;
        let limit = SystemClock.now() + LIMIT;
        let heard = within(&SystemClock, limit, heard.recv()).await;
        heard.expect("something is heard in time").unwrap()
    }

    pub(super) async fn hears_its_turn(&self, waiting: Waiting) {
        assert_eq!(self.hears().await, word(waiting, Word::YourTurn));
    }

    /// That one of the permits is free for it: which one.
    pub(super) async fn hears_its_permit(&self, waiting: Waiting) -> u32 {
        match self.hears().await {
            Heard::Hint(Hint {
                waiter,
                word: Word::YourTurn,
                slot: Some(slot),
                ..
            }) if waiter == waiting.ticket.waiter => slot.get(),
            other => panic!("heard {other:?}"),
        }
    }

    /// That it is next, and for how long at most the one before it has the lock.
    pub(super) async fn hears_soon(&self, waiting: Waiting) -> Duration {
        match self.hears().await {
            Heard::Hint(Hint {
                waiter,
                word: Word::Soon { remaining },
                ..
            }) if waiter == waiting.ticket.waiter => remaining,
            other => panic!("heard {other:?}"),
        }
    }

    /// That it is to ask at once, which it does: it waits on.
    pub(super) async fn is_to_show_itself(&self, waiting: Waiting) {
        assert_eq!(self.hears_soon(waiting).await, Duration::ZERO);
        self.busy(waiting).await;
    }

    /// Nothing was said to it by what has been answered until now: its server says things to one
    /// connection in order.
    pub(super) async fn has_heard_nothing(&self) {
        self.queue().await;
        let heard = self.heard.lock().await.try_recv();
        assert!(heard.is_err(), "{heard:?}");
    }

    /// How those who wait want the lock, in order.
    pub(super) async fn modes(&self) -> Vec<Mode> {
        let key = Key::new("deploy").unwrap();
        let waiters = self.member.waiters(&key).await.unwrap();
        waiters.iter().map(|waiter| waiter.mode).collect()
    }

    /// Who waits, in order.
    pub(super) async fn queue(&self) -> Vec<Ticket> {
        let key = Key::new("deploy").unwrap();
        let waiters = self.member.waiters(&key).await.unwrap();
        waiters.iter().map(|waiter| waiter.ticket).collect()
    }
}

/// As if the last one had been asked to only a moment ago, however slow the test is.
pub(super) fn nobody_else_is_to_show_itself(server: &RedisServer) {
    lasts(server, "shows");
}

/// As if those who wait had been called only a moment ago.
pub(super) fn nobody_is_called_again(server: &RedisServer) {
    lasts(server, "called");
}

fn lasts(server: &RedisServer, note: &str) {
    let until = "9000000000000";
    let set = server.command(&["ZADD", OFFERED, "XX", "CH", until, note]);
    assert_eq!(set, Reply::Integer(1), "{note}");
}

impl Waiting {
    pub(super) fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    pub(super) fn for_one_of(mut self, count: u32) -> Self {
        self.mode = Mode::Permit(Permits::new(count).unwrap());
        self
    }

    /// What the lock key holds while it is reserved for this one.
    pub(super) fn reservation(self) -> String {
        let Ticket { since, waiter } = self.ticket;
        let mark = match self.mode {
            Mode::Exclusive => String::new(),
            Mode::Shared => "/s".to_owned(),
            Mode::Permit(permits) => format!("/p{permits}"),
        };
        format!("leasehold:next:{}:{waiter}{mark}", since.as_micros())
    }

    /// Reserves the lock for it by hand, for longer than any test takes.
    pub(super) fn is_next_at(self, server: &RedisServer) {
        let value = self.reservation();
        let set = server.command(&["SET", "deploy", &value, "PX", "600000"]);
        assert_eq!(set, Reply::Status("OK".into()));
    }
}

fn word(waiting: Waiting, word: Word) -> Heard {
    Heard::Hint(Hint {
        slot: None,
        key: Key::new("deploy").unwrap(),
        waiter: waiting.ticket.waiter,
        word,
    })
}

/// Whether an attempt was granted.
pub(super) fn is_granted(attempt: &Attempt) -> bool {
    matches!(attempt, Attempt::Granted(_))
}
