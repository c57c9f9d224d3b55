//! Callers of one request, and the store that keeps its result.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::env::Env;
use leasehold::memory::MemoryStore;
use leasehold::once::{Once, OnceResult, OnceRun, OnceStart};
use leasehold::{Client, Error, Fence, Guard};
use leasehold_testkit::{CrashInjector, FaultyStore, virtual_env};

use crate::fixture::{TTL, client};

/// A store and its callers.
pub(crate) struct CallersFixture {
    pub(crate) env: Env,
    pub(crate) memory: MemoryStore,
    /// The fences under which the request was run.
    ran: Arc<Mutex<Vec<Fence>>>,
}

/// A client, and its own way to the store.
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) way: FaultyStore,
}

impl CallersFixture {
    pub(crate) fn new() -> Self {
        let env = virtual_env(1);
        Self {
            memory: MemoryStore::new(),
            env,
            ran: Arc::default(),
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        self.caller_with(None)
    }

    pub(crate) fn caller_with(&self, fuse: Option<&CrashInjector>) -> Caller {
        let mut way = FaultyStore::new(self.memory.clone());
        if let Some(fuse) = fuse {
            way = way.with_fuse(fuse.clone());
        }
        let client = client(way.clone(), &self.env);
        Caller { client, way }
    }

    /// Makes the request: whose result it is says under which fence it was run.
    pub(crate) async fn call(&self, once: &Once) -> Result<OnceResult, Error> {
        let ran = Arc::clone(&self.ran);
        let run = async |guard: &Guard| {
            let fence = guard.fence();
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
        let clock = &self.env.clock;
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
}
