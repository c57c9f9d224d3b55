//! Those who make one request, and the stores that keep what becomes of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::ambient::Ambient;
use leasehold::{
    Client, Error, Fence, Member, MemoryStore, Once, OnceResult, OnceRun, OnceStart, Quorum,
};
use leasehold_testkit::{Fault, FaultyMember, Fuse, virtual_ambient};

use crate::scene::{TTL, client};

/// Stores that keep what they are told, and who asks them.
pub(crate) struct World {
    pub(crate) ambient: Ambient,
    pub(crate) stores: Vec<MemoryStore>,
    /// The fences under which the request was run.
    ran: Arc<Mutex<Vec<Fence>>>,
}

/// A client, and its own way to each store.
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) ways: Vec<FaultyMember>,
}

impl World {
    pub(crate) fn new(count: usize) -> Self {
        let ambient = virtual_ambient(1);
        let store = |n: usize| MemoryStore::member(format!("m{n}"), ambient.clone());
        let stores: Vec<_> = (0..count).map(store).collect();
        for store in &stores {
            store.claim_durable(true);
        }
        let world = Self {
            ambient,
            stores,
            ran: Arc::default(),
        };
        if count > 1 {
            let quorum = world.quorum(&world.ways(None));
            // Members in memory answer at once.
            pollster::block_on(quorum.init()).expect("a set");
        }
        world
    }

    fn ways(&self, fuse: Option<&Fuse>) -> Vec<FaultyMember> {
        let way = |store: &MemoryStore| {
            let way = FaultyMember::new(store.clone(), self.ambient.clone());
            match fuse {
                Some(fuse) => way.with_fuse(fuse.clone()),
                None => way,
            }
        };
        self.stores.iter().map(way).collect()
    }

    fn quorum(&self, ways: &[FaultyMember]) -> Quorum {
        let members: Vec<_> = ways
            .iter()
            .map(|way| Arc::new(way.clone()) as Arc<dyn Member>)
            .collect();
        let quorum = match members.as_slice() {
            [only] => Quorum::of_one(Arc::clone(only)),
            _ => Quorum::new(members).expect("a valid set"),
        };
        quorum.ambient(self.ambient.clone())
    }

    pub(crate) fn caller(&self) -> Caller {
        self.caller_with(None)
    }

    pub(crate) fn caller_with(&self, fuse: Option<&Fuse>) -> Caller {
        let ways = self.ways(fuse);
        let client = client(self.quorum(&ways), &self.ambient);
        Caller { client, ways }
    }

    /// Makes the request: whose result it is says under which fence it was run.
    pub(crate) async fn call(&self, once: &Once) -> Result<OnceResult, Error> {
        let ran = Arc::clone(&self.ran);
        let run = async |fence: Fence| {
            ran.lock().expect("a whole list").push(fence);
            Ok::<_, String>(format!("under {fence}"))
        };
        once.run(run)
            .await
            .map(|result| result.expect("it never fails"))
    }

    pub(crate) fn ran(&self) -> Vec<Fence> {
        self.ran.lock().expect("a whole list").clone()
    }

    pub(crate) async fn pass(&self, span: Duration) {
        let clock = &self.ambient.clock;
        clock.sleep_until(clock.now() + span).await;
    }
}

impl Caller {
    pub(crate) fn once(&self) -> Once {
        self.client.once("pay/17").payload("EUR 12").ttl(TTL)
    }

    pub(crate) async fn begin(&self) -> OnceRun {
        match self.once().try_begin().await {
            Ok(OnceStart::Run(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn done(&self) -> OnceResult {
        match self.once().try_begin().await {
            Ok(OnceStart::Done(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn set(&self, ways: &[usize], fault: Fault) {
        for way in ways {
            self.ways[*way].set(fault);
        }
    }
}
