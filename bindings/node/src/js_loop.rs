//! Polls calls on the thread of JavaScript.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold::Error;
use leasehold_bridge::{BoxFuture, Calls, ErrorFields, Held, Signal, Started};
use napi::bindgen_prelude::*;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use serde::Serialize;

use crate::hold::Hold;

/// What a call returns.
#[derive(Debug)]
pub(crate) enum Output {
    Nothing,
    Hold(Held),
    Text(String),
    /// A value that JavaScript parses.
    Json(String),
}

impl Output {
    pub(crate) fn nothing((): ()) -> Self {
        Self::Nothing
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns `value` for JavaScript to parse.
    pub(crate) fn json(value: impl Serialize) -> Self {
        Self::Json(to_json(&value))
    }
}

/// The end of a call. Without a failure and a value, the call returns nothing.
#[napi(object, object_from_js = false)]
#[derive(Debug)]
pub struct Ended {
    pub id: u32,
    /// The fields of the error.
    pub failure: Option<String>,
    pub hold: Option<Hold>,
    pub text: Option<String>,
    pub json: Option<String>,
}

/// A call that is under way, by its number for `cancel`, or one that has ended at once.
pub(crate) type Begun = Either<f64, Ended>;

/// The calls of one thread of JavaScript.
#[napi]
pub struct Loop {
    // The data of a call is the number that JavaScript gave it.
    calls: Calls<Drain, u32, Output>,
    forgotten: Arc<Forgotten>,
}

/// The function that runs the loop. Weak, so that it does not keep the process alive.
#[derive(Clone)]
struct Drain(Arc<ThreadsafeFunction<(), (), (), Status, false, true>>);

impl Signal for Drain {
    fn signal(&self) {
        // Fails if the thread of JavaScript ends. Its calls end with it.
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

#[napi]
impl Loop {
    /// `drain` calls `run`.
    #[napi(constructor)]
    pub fn new(drain: Function<'_, (), ()>) -> Result<Self> {
        let drain = drain.build_threadsafe_function().weak::<true>().build()?;
        let drain = Drain(Arc::new(drain));
        Ok(Self {
            calls: Calls::new(drain.clone()),
            forgotten: Arc::new(Forgotten {
                holds: Mutex::default(),
                drain,
            }),
        })
    }

    /// Polls the calls that can go on, and returns those that ended.
    #[napi]
    pub fn run(&self) -> Vec<Ended> {
        let mut ended = Vec::new();
        let Ok(()) = self.calls.run(|id, answer| {
            ended.push(self.ended(id, answer));
            Ok::<_, std::convert::Infallible>(())
        });
        ended
    }

    /// Returns the names of locks whose guards the garbage collector has found since the last call.
    #[napi]
    pub fn forgotten(&self) -> Option<Vec<String>> {
        let mut holds = locked(&self.forgotten.holds);
        let names = std::mem::take(&mut holds.new);
        (!names.is_empty()).then_some(names)
    }

    /// Drops a call, which withdraws its request from the store.
    #[napi]
    pub fn cancel(&self, number: f64) {
        self.calls.cancel(number as u64);
    }

    /// Drops all calls.
    #[napi]
    pub fn clear(&self) {
        self.calls.clear();
    }
}

impl Loop {
    fn ended(&self, id: u32, answer: std::result::Result<Output, Error>) -> Ended {
        let mut ended = Ended {
            id,
            failure: None,
            hold: None,
            text: None,
            json: None,
        };
        match answer {
            Ok(Output::Nothing) => {}
            Ok(Output::Hold(held)) => {
                ended.hold = Some(Hold::new(held, Arc::clone(&self.forgotten)));
            }
            Ok(Output::Text(text)) => ended.text = Some(text),
            Ok(Output::Json(json)) => ended.json = Some(json),
            Err(error) => ended.failure = Some(failure(&error)),
        }
        ended
    }

    /// Begins a call, whose answer JavaScript gets as `output`. Ends it at once with an error.
    pub(crate) fn begin<T: 'static>(
        &self,
        id: u32,
        call: std::result::Result<BoxFuture<T>, Error>,
        output: impl FnOnce(T) -> Output + Send + 'static,
    ) -> Begun {
        let call = match call {
            Ok(call) => call,
            Err(error) => return Either::B(self.ended(id, Err(error))),
        };
        let call = Box::pin(async move { call.await.map(output) });
        match self.calls.start(call, id) {
            Started::Pending(number) => Either::A(number as f64),
            Started::Done(id, answer) => Either::B(self.ended(id, answer)),
        }
    }
}

/// What was still held when the garbage collector found its guard: it stays held until the client is closed, or the thread
/// of JavaScript ends. Otherwise a lock could become free at any time, while the program works under it.
pub(crate) struct Forgotten {
    holds: Mutex<ForgottenHolds>,
    drain: Drain,
}

#[derive(Default)]
struct ForgottenHolds {
    kept: Vec<Arc<Held>>,
    /// The names that JavaScript has not asked for.
    new: Vec<String>,
    /// Whether the thread has ended.
    is_over: bool,
}

impl Forgotten {
    /// Keeps a hold whose guard is gone.
    pub(crate) fn keep(&self, held: &Arc<Held>) {
        if !held.is_valid() {
            return;
        }
        let mut holds = locked(&self.holds);
        if !holds.is_over {
            holds.kept.push(Arc::clone(held));
            holds.new.push(held.name().to_owned());
            self.drain.signal();
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let mut holds = locked(&self.forgotten.holds);
        holds.is_over = true;
        let kept = std::mem::take(&mut holds.kept);
        drop(holds);
        drop(kept);
    }
}

/// Locks a mutex, also after a panic.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the fields of an error, from which JavaScript makes its own.
pub(crate) fn failure(error: &Error) -> String {
    to_json(&ErrorFields::from(error))
}

fn to_json(value: &impl Serialize) -> String {
    // Each value is a struct of strings and numbers, and a number that JSON lacks becomes null.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.calls.fmt(f)
    }
}
