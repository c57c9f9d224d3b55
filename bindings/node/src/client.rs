//! The client, and what an observer of an election waits on.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use leasehold::Error;
use leasehold_bridge::{
    AcquireRequest, BoxFuture, HolderFields, LazyClient, OnceFields, OnceStep, Target, span,
};
use napi::bindgen_prelude::{AsyncTask, ClassInstance, Either};
use napi::{Env, Task};
use napi_derive::napi;
use serde::Serialize;

use crate::js_loop::{Begun, Loop, Output, failure, locked};
use crate::settings::{BreakSettings, Settings};

/// A client, which opens at its first call.
#[napi]
#[derive(Debug)]
pub struct Client {
    client: Arc<LazyClient>,
    /// The client of a close that is under way.
    closing: Arc<Mutex<Option<leasehold::Client>>>,
}

type Call<T> = Result<BoxFuture<T>, Error>;

#[napi]
impl Client {
    /// Throws an error whose text is the fields of the failure.
    #[napi(constructor)]
    pub fn new(url: String, label: Option<String>) -> napi::Result<Self> {
        let client = LazyClient::new(url, label, "node");
        Ok(Self {
            client: Arc::new(client.map_err(thrown)?),
            closing: Arc::default(),
        })
    }

    /// Acquires the lock of this name, one of its permits, or the locks of these names.
    #[napi]
    pub fn acquire(
        &self,
        calls: &Loop,
        id: u32,
        names: Either<String, Vec<String>>,
        permits: Option<u32>,
        is_try: bool,
        settings: Option<Settings>,
    ) -> Begun {
        let target = match (names, permits) {
            (Either::A(name), None) => Target::Lock(name),
            (Either::A(name), Some(permits)) => Target::Permit(name, permits),
            (Either::B(names), _) => Target::Set(names),
        };
        let call = || -> Call<_> {
            let options = settings.unwrap_or_default().options(is_try)?;
            Ok(AcquireRequest { target, options }.acquire(&self.client.get()?))
        };
        let output = |held: Option<_>| held.map_or(Output::Nothing, Output::Hold);
        calls.begin(id, call(), output)
    }

    /// Begins a request that takes effect once. Returns its run, or its state as a value.
    #[napi]
    pub fn begin_once(
        &self,
        calls: &Loop,
        id: u32,
        name: String,
        is_try: bool,
        settings: Settings,
    ) -> Begun {
        let call = || -> Call<_> { Ok(settings.once(name, is_try)?.begin(&self.client.get()?)) };
        calls.begin(id, call(), |step| match step {
            OnceStep::Run(held) => Output::Hold(held),
            OnceStep::Done(result) => Output::json(OnceState::Done { result }),
            OnceStep::InProgress(holder) => Output::json(OnceState::InProgress { holder }),
        })
    }

    #[napi]
    pub fn once_result(&self, calls: &Loop, id: u32, name: String, settings: Settings) -> Begun {
        let call = || -> Call<_> { Ok(settings.once(name, false)?.result(&self.client.get()?)) };
        calls.begin(id, call(), Output::json)
    }

    #[napi]
    pub fn forget_once(&self, calls: &Loop, id: u32, name: String, settings: Settings) -> Begun {
        let call = || -> Call<_> { Ok(settings.once(name, false)?.forget(&self.client.get()?)) };
        calls.begin(id, call(), Output::json)
    }

    #[napi]
    pub fn campaign(&self, calls: &Loop, id: u32, name: String, settings: Settings) -> Begun {
        let call = || -> Call<_> { Ok(settings.campaign(name)?.campaign(&self.client.get()?)) };
        calls.begin(id, call(), Output::Hold)
    }

    #[napi]
    pub fn leader(&self, calls: &Loop, id: u32, name: String, settings: Settings) -> Begun {
        let call = || -> Call<_> { Ok(settings.campaign(name)?.leader(&self.client.get()?)) };
        calls.begin(id, call(), Output::json)
    }

    /// Returns a watch of the leader. Throws as the constructor does.
    #[napi]
    pub fn observe(&self, name: String, settings: Settings) -> napi::Result<Watch> {
        let observe = || settings.campaign(name)?.observe(&self.client.get()?);
        observe().map(|watch| Watch { watch }).map_err(thrown)
    }

    #[napi]
    pub fn holders(&self, calls: &Loop, id: u32, name: String) -> Begun {
        calls.begin(id, self.client.holders(name), Output::json)
    }

    #[napi]
    pub fn waiters(&self, calls: &Loop, id: u32, name: String) -> Begun {
        calls.begin(id, self.client.waiters(name), Output::json)
    }

    #[napi]
    pub fn list_locks(&self, calls: &Loop, id: u32, pattern: String, limit: u32) -> Begun {
        let listing = self.client.list_locks(&pattern, limit as usize);
        calls.begin(id, listing, Output::json)
    }

    #[napi]
    pub fn health(&self, calls: &Loop, id: u32) -> Begun {
        calls.begin(id, self.client.health(), Output::json)
    }

    #[napi]
    pub fn break_lock(&self, calls: &Loop, id: u32, settings: BreakSettings) -> Begun {
        calls.begin(id, self.client.break_lock(settings.into()), Output::json)
    }

    #[napi]
    pub fn adopt(&self, calls: &Loop, id: u32, handle: String) -> Begun {
        calls.begin(id, self.client.adopt(&handle), Output::Hold)
    }

    #[napi]
    pub fn renew_handle(&self, calls: &Loop, id: u32, handle: String) -> Begun {
        calls.begin(id, self.client.renew_handle(&handle), Output::Text)
    }

    #[napi]
    pub fn release_handle(&self, calls: &Loop, id: u32, handle: String) -> Begun {
        calls.begin(id, self.client.release_handle(&handle), Output::text)
    }

    /// Prepares a new store, in a thread of Node that may block. Rejects as the constructor throws.
    #[napi]
    pub fn init(&self) -> AsyncTask<Init> {
        AsyncTask::new(Init(Arc::clone(&self.client)))
    }

    #[napi]
    pub fn close(&self, calls: &Loop, id: u32, limit: f64) -> Begun {
        let closing = span(limit).map(|limit| self.close_within(limit));
        calls.begin(id, closing, Output::nothing)
    }
}

/// Closes all of the clients together, and blocks until their stores have confirmed that or the time is over: for the end
/// of a thread.
#[napi]
pub fn close_now(clients: Vec<ClassInstance<'_, Client>>, limit: f64) {
    let Ok(limit) = span(limit) else { return };
    let closing = clients.iter().map(|client| -> BoxFuture<()> {
        // A close that is under way is polled no more. This one ends what is left of it.
        match locked(&client.closing).take() {
            Some(client) => Box::pin(async move { client.close(limit).await }),
            None => client.client.close(limit),
        }
    });
    let mut closing: Vec<_> = closing.collect();
    pollster::block_on(poll_fn(|context| {
        // No caller is left to handle a failure.
        closing.retain_mut(|close| close.as_mut().poll(context).is_pending());
        match closing.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }));
}

impl Client {
    fn close_within(&self, limit: Duration) -> BoxFuture<()> {
        if self.client.is_open() {
            *locked(&self.closing) = self.client.get().ok();
        }
        let (close, closing) = (self.client.close(limit), Arc::clone(&self.closing));
        Box::pin(async move {
            let closed = close.await;
            locked(&closing).take();
            closed
        })
    }
}

/// Returns an error whose text is the fields of the failure.
fn thrown(error: Error) -> napi::Error {
    napi::Error::from_reason(failure(&error))
}

/// The preparation of a store.
#[derive(Debug)]
pub struct Init(Arc<LazyClient>);

impl Task for Init {
    type Output = bool;
    type JsValue = bool;

    fn compute(&mut self) -> napi::Result<bool> {
        self.0.init().map_err(thrown)
    }

    fn resolve(&mut self, _: Env, changed: bool) -> napi::Result<bool> {
        Ok(changed)
    }
}

/// The changes of the leader of an election.
#[napi]
#[derive(Debug)]
pub struct Watch {
    watch: leasehold_bridge::Watch,
}

#[napi]
impl Watch {
    /// Returns the next change, or null once the client is closed.
    #[napi]
    pub fn next(&self, calls: &Loop, id: u32) -> Begun {
        calls.begin(id, self.watch.next(), Output::json)
    }
}

/// What a caller learns of a request that it does not run.
#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum OnceState {
    Done { result: OnceFields },
    InProgress { holder: Option<Box<HolderFields>> },
}
