//! What a program holds.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use leasehold::Error;
use leasehold_bridge::{BoxFuture, Held, span};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::js_loop::{Begun, Forgotten, Loop, Output, failure};

/// A lock, several locks, a run of a request, or a leadership.
#[napi]
pub struct Hold {
    held: Arc<Held>,
    forgotten: Arc<Forgotten>,
}

impl Hold {
    pub(crate) fn new(held: Held, forgotten: Arc<Forgotten>) -> Self {
        Self {
            held: Arc::new(held),
            forgotten,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.forgotten.keep(&self.held);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}

/// What a call returns at once: one of the two.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Answer {
    pub failure: Option<String>,
    pub value: Option<String>,
}

impl From<Result<String, Error>> for Answer {
    fn from(answer: Result<String, Error>) -> Self {
        match answer {
            Ok(value) => Self {
                failure: None,
                value: Some(value),
            },
            Err(error) => Self {
                failure: Some(failure(&error)),
                value: None,
            },
        }
    }
}

/// What JavaScript reads at once.
#[napi]
impl Hold {
    #[napi(getter)]
    pub fn names(&self) -> Vec<String> {
        self.held
            .fences()
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// A fence is at most 2^53 - 1, so a number of JavaScript is exact.
    #[napi(getter)]
    pub fn fences(&self) -> Vec<f64> {
        self.held.fences().map(|(_, fence)| fence as f64).collect()
    }

    #[napi(getter)]
    pub fn is_valid(&self) -> bool {
        self.held.is_valid()
    }

    /// In seconds; infinite without a deadline.
    #[napi(getter)]
    pub fn remaining(&self) -> f64 {
        self.held.remaining_seconds()
    }

    #[napi(getter)]
    pub fn lost_reason(&self) -> Option<&'static str> {
        self.held.lost_reason()
    }

    /// Returns the failure if it is not held for this many seconds.
    #[napi]
    pub fn ensure(&self, seconds: f64) -> Option<String> {
        let ensured = span(seconds).and_then(|span| self.held.ensure(span));
        ensured.as_ref().err().map(failure)
    }

    #[napi]
    pub fn handle(&self) -> Answer {
        self.held.handle().into()
    }

    #[napi]
    pub fn detach(&self) -> Answer {
        self.held.into_handle().into()
    }
}

/// What ends later.
#[napi]
impl Hold {
    #[napi]
    pub fn release(&self, calls: &Loop, id: u32) -> Begun {
        calls.begin(id, self.held.release(), Output::text)
    }

    /// Ends with the reason once it is lost, or without one once it is released.
    #[napi]
    pub fn ended(&self, calls: &Loop, id: u32) -> Begun {
        let output = |reason: Option<&str>| reason.map_or(Output::Nothing, Output::text);
        calls.begin(id, self.held.ended(), output)
    }

    #[napi]
    pub fn reenter(&self, calls: &Loop, id: u32) -> Begun {
        let held = self.held.reenter();
        let held = held.map(|held| -> BoxFuture<Held> { Box::pin(ready(Ok(held))) });
        calls.begin(id, held, Output::Hold)
    }

    #[napi]
    pub fn renew(&self, calls: &Loop, id: u32) -> Begun {
        calls.begin(id, self.held.renew(), Output::nothing)
    }

    #[napi]
    pub fn downgrade(&self, calls: &Loop, id: u32) -> Begun {
        calls.begin(id, self.held.downgrade(), Output::nothing)
    }

    #[napi]
    pub fn publish(&self, calls: &Loop, id: u32, value: String) -> Begun {
        calls.begin(id, self.held.publish(value), Output::nothing)
    }

    #[napi]
    pub fn keep_announced(&self, calls: &Loop, id: u32) -> Begun {
        calls.begin(id, self.held.keep_announced(), Output::nothing)
    }

    #[napi]
    pub fn commit(&self, calls: &Loop, id: u32, result: Buffer) -> Begun {
        calls.begin(id, self.held.commit(result.into()), Output::json)
    }
}
