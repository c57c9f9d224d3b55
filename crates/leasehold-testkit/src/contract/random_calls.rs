//! Random calls, one after another, against a model of one lock.

use std::sync::Arc;

use leasehold::look::BreakRecord;
use leasehold::store::{AcquireError, LockRequest, Permits, ReleaseReply, RenewReply};
use leasehold::{Fence, Mode};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::{Union, ValueTree as _};
use proptest::test_runner::TestRunner;

use super::fixture::{Fixture, LONG, OpenStore, held};

const ROUNDS: usize = 12;
const CALLS: usize = 24;

#[derive(Clone, Debug)]
enum Call {
    Try(Mode),
    /// The others name one of the requests so far, also of those that hold no longer.
    Renew(Index),
    Downgrade(Index),
    Release(Index),
    Break(Index),
}

/// What the model knows about a request.
struct Known {
    request: LockRequest,
    fence: Option<Fence>,
    is_held: bool,
}

struct Model<'a> {
    fixture: &'a Fixture,
    stores: [OpenStore; 2],
    permits: Permits,
    known: Vec<Known>,
}

pub(crate) async fn a1_random_calls_follow_a_model(fixture: &Fixture) {
    let stores = [fixture.open(), fixture.open()];
    let permits = Permits::new(2).expect("a valid number");
    let mut model = Model {
        fixture,
        stores,
        permits,
        known: Vec::new(),
    };
    for _ in 0..ROUNDS {
        let calls = model.calls().new_tree(&mut TestRunner::default());
        model
            .follow(&calls.expect("every choice is valid").current())
            .await;
    }
}

impl Model<'_> {
    fn calls(&self) -> impl Strategy<Value = Vec<Call>> + use<> {
        let guarantees = self.stores[0].guarantees();
        let mut modes = vec![Just(Mode::Exclusive)];
        modes.extend(guarantees.shared.then_some(Just(Mode::Shared)));
        modes.extend(
            guarantees
                .permits
                .then_some(Just(Mode::Permit(self.permits))),
        );
        let index = any::<Index>();
        let mut calls = vec![
            (6, Union::new(modes).prop_map(Call::Try).boxed()),
            (2, index.prop_map(Call::Renew).boxed()),
            (4, any::<Index>().prop_map(Call::Release).boxed()),
        ];
        if guarantees.shared {
            calls.push((2, any::<Index>().prop_map(Call::Downgrade).boxed()));
        }
        if self.stores[0].admin().is_some() {
            calls.push((1, any::<Index>().prop_map(Call::Break).boxed()));
        }
        prop::collection::vec(Union::new_weighted(calls), CALLS)
    }

    /// Makes the calls on a new lock. At the end, the lock is free.
    async fn follow(&mut self, calls: &[Call]) {
        self.known.clear();
        let key = self.fixture.key();
        for (number, call) in calls.iter().enumerate() {
            let so_far = || format!("call {number} of {:?}", &calls[..=number]);
            match call {
                Call::Try(mode) => {
                    let request = self.fixture.request(&key, LONG).with_mode(*mode);
                    self.ask(request, so_far).await;
                }
                _ if self.known.is_empty() => {}
                Call::Renew(index) => self.renew(index.index(self.known.len()), so_far).await,
                Call::Downgrade(index) => {
                    self.downgrade(index.index(self.known.len()), so_far).await;
                }
                Call::Release(index) => self.release(index.index(self.known.len()), so_far).await,
                Call::Break(index) => self.break_at_once(index.index(self.known.len())).await,
            }
        }
        for which in 0..self.known.len() {
            self.release(which, || format!("the end of {calls:?}"))
                .await;
        }
        self.ask(self.fixture.request(&key, LONG), || {
            format!("the end of {calls:?}")
        })
        .await;
        self.release(self.known.len() - 1, || "the last release".into())
            .await;
    }

    fn store(&self, which: usize) -> &OpenStore {
        &self.stores[which % self.stores.len()]
    }

    /// Whether the lock is free for a request in this mode.
    fn admits(&self, mode: Mode) -> bool {
        let mut holders = self.known.iter().filter(|it| it.is_held);
        match mode {
            Mode::Exclusive => holders.next().is_none(),
            Mode::Shared => holders.all(|it| it.request.mode == mode),
            Mode::Permit(of) => {
                let count = holders.clone().count();
                count < of.get() as usize && holders.all(|it| it.request.mode == mode)
            }
        }
    }

    async fn ask(&mut self, request: LockRequest, so_far: impl Fn() -> String) {
        let is_free = self.admits(request.mode);
        let fence = match self.store(self.known.len()).acquire(&request).await {
            Ok(grant) => Some(grant.fence),
            Err(AcquireError::Busy(_)) => None,
            Err(AcquireError::Failed(error)) => panic!("{error}: {}", so_far()),
        };
        assert_eq!(fence.is_some(), is_free, "granted: {}", so_far());
        let greatest = self.known.iter().filter_map(|it| it.fence).max();
        assert!(
            fence.is_none() || fence > greatest,
            "{fence:?} after {greatest:?}: {}",
            so_far()
        );
        self.known.push(Known {
            request,
            fence,
            is_held: is_free,
        });
    }

    async fn renew(&self, which: usize, so_far: impl Fn() -> String) {
        let it = &self.known[which];
        let Some(fence) = it.fence else { return };
        let mut answers = self.store(which).renew(&[held(&it.request, fence)]).await;
        let is_as_expected = match answers.pop().expect("one answer") {
            RenewReply::Renewed(_) => it.is_held,
            RenewReply::Lost(_) => !it.is_held,
            RenewReply::Unknown(error) => panic!("{error}: {}", so_far()),
        };
        assert!(is_as_expected, "held is {}: {}", it.is_held, so_far());
    }

    async fn downgrade(&mut self, which: usize, so_far: impl Fn() -> String) {
        let it = &mut self.known[which];
        if it.is_held && it.request.mode == Mode::Exclusive {
            it.request = it.request.clone().with_mode(Mode::Shared);
            self.renew(which, so_far).await;
        }
    }

    async fn release(&mut self, which: usize, so_far: impl Fn() -> String) {
        let it = &self.known[which];
        let is_as_expected = match self.store(which).release(&it.request).await {
            Ok(ReleaseReply::Released) => it.is_held,
            Ok(ReleaseReply::WasLost) => !it.is_held,
            Err(error) => panic!("{error}: {}", so_far()),
        };
        assert!(is_as_expected, "held is {}: {}", it.is_held, so_far());
        self.known[which].is_held = false;
    }

    async fn break_at_once(&mut self, which: usize) {
        let it = &self.known[which];
        let by = Arc::unwrap_or_clone(self.fixture.client());
        let wall = self.fixture.wall();
        let mut record = BreakRecord::new(it.request.owner, it.fence, by, wall);
        record.at_once = true;
        let admin = self.store(which).admin().expect("a store with admin");
        let broken = admin.break_lease(&it.request.key, &record).await;
        assert_eq!(broken.expect("an answer").existed, it.is_held);
        self.known[which].is_held = false;
    }
}
