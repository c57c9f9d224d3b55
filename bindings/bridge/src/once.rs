//! Requests that take effect once.

use std::time::Duration;

use leasehold::Client;
use leasehold::once::{Once, OnceResult, OnceStart};
use serde::Serialize;

use crate::inspect::HolderFields;
use crate::request::with_options;
use crate::{BoxFuture, Held, Options, Wait};

/// A request that takes effect once.
#[derive(Clone, Debug)]
pub struct OnceRequest {
    /// The name of the request.
    pub name: String,
    /// What is asked for.
    pub payload: Vec<u8>,
    /// How long the store keeps the result.
    pub retention: Option<Duration>,
    /// How to acquire its lock. It is never shared.
    pub options: Options,
}

/// The state of a request for one caller.
#[derive(Debug)]
pub enum OnceStep {
    /// This caller runs it.
    Run(Held),
    /// It is done.
    Done(OnceFields),
    /// Another caller runs it.
    InProgress(Option<Box<HolderFields>>),
}

/// The result of a request.
#[derive(Clone, Debug, Serialize)]
pub struct OnceFields {
    /// What the attempt committed.
    pub bytes: Vec<u8>,
    /// The fence of the attempt that committed it.
    pub fence: u64,
    /// How much longer the store keeps it, in seconds.
    pub remaining: f64,
}

impl OnceRequest {
    /// Determines whether this caller runs the request. With [`Wait::Try`] it does not wait for another caller.
    pub fn begin(self, client: &Client) -> BoxFuture<OnceStep> {
        let (once, wait) = (self.builder(client), self.options.wait);
        Box::pin(async move {
            let start = match wait {
                Wait::Try => once.try_begin().await?,
                Wait::AtMost(_) | Wait::Forever => once.begin().await?,
            };
            Ok(match start {
                OnceStart::Run(run) => OnceStep::Run(run.into()),
                OnceStart::Done(done) => OnceStep::Done(OnceFields::of(&done)),
                OnceStart::InProgress(holder) => {
                    OnceStep::InProgress(holder.as_ref().map(HolderFields::of).map(Box::new))
                }
            })
        })
    }

    /// Returns the result if the request is certainly done.
    pub fn result(self, client: &Client) -> BoxFuture<Option<OnceFields>> {
        let once = self.builder(client);
        Box::pin(async move { Ok(once.result().await?.as_ref().map(OnceFields::of)) })
    }

    /// Forgets the request. Returns whether there was a result or an attempt.
    pub fn forget(self, client: &Client) -> BoxFuture<bool> {
        let once = self.builder(client);
        Box::pin(async move { once.forget().await })
    }

    fn builder(&self, client: &Client) -> Once {
        let once = client.once(&self.name).payload(&self.payload);
        let once = match self.retention {
            Some(retention) => once.retention(retention),
            None => once,
        };
        with_options!(once, self.options)
    }
}

impl OnceFields {
    pub(crate) fn of(done: &OnceResult) -> Self {
        Self {
            bytes: done.bytes.to_vec(),
            fence: done.fence.get(),
            remaining: done.remaining.as_secs_f64(),
        }
    }
}
