//! The calls of one event loop.
//!
//! A thread of the core that has an answer pushes the number of the call into a list and, if the list was empty, sends
//! one signal. It waits for nothing. The event loop then polls the calls in the list.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use leasehold::Error;

use crate::{BoxFuture, locked};

/// Wakes an event loop, from any thread. Several signals before the loop runs may be one.
pub trait Signal: Send + Sync + 'static {
    /// Makes the event loop call [`Calls::run`] soon.
    fn signal(&self);
}

/// The calls of one event loop, each with data of the language, for example the promise that it resolves.
pub struct Calls<S, D, T> {
    woken: Arc<Woken<S>>,
    running: Mutex<Running<D, T>>,
}

/// The state of a call after its first poll.
#[derive(Debug)]
pub enum Started<D, T> {
    /// It has ended.
    Done(D, Result<T, Error>),
    /// It is under way, with this number for [`Calls::cancel`].
    Pending(u64),
}

struct Woken<S> {
    numbers: Mutex<Vec<u64>>,
    signal: S,
}

struct Running<D, T> {
    calls: HashMap<u64, Call<D, T>>,
    last: u64,
}

struct Call<D, T> {
    future: BoxFuture<T>,
    data: D,
    is_woken: Arc<AtomicBool>,
    waker: Waker,
}

struct CallWaker<S> {
    number: u64,
    is_woken: Arc<AtomicBool>,
    woken: Arc<Woken<S>>,
}

impl<S: Signal, D, T> Calls<S, D, T> {
    /// Returns an empty list, whose loop `signal` wakes.
    pub fn new(signal: S) -> Self {
        let woken = Woken {
            numbers: Mutex::default(),
            signal,
        };
        let running = Running {
            calls: HashMap::new(),
            last: 0,
        };
        Self {
            woken: Arc::new(woken),
            running: Mutex::new(running),
        }
    }

    /// Returns the signal.
    pub fn signal(&self) -> &S {
        &self.woken.signal
    }

    /// Polls `future` once, and keeps it with `data` unless it has ended.
    pub fn start(&self, future: BoxFuture<T>, data: D) -> Started<D, T> {
        let number = {
            let mut running = locked(&self.running);
            running.last += 1;
            running.last
        };
        let is_woken = Arc::new(AtomicBool::new(false));
        let waker = Waker::from(Arc::new(CallWaker {
            number,
            is_woken: Arc::clone(&is_woken),
            woken: Arc::clone(&self.woken),
        }));
        let call = Call {
            future,
            data,
            is_woken,
            waker,
        };
        match self.poll(number, call) {
            Some((data, answer)) => Started::Done(data, answer),
            None => Started::Pending(number),
        }
    }

    /// Polls the calls that were woken, and gives each that ended to `done`. After an error of `done` the remaining calls
    /// stay woken, and the loop is woken again.
    ///
    /// # Errors
    ///
    /// The first error of `done`.
    pub fn run<E>(
        &self,
        mut done: impl FnMut(D, Result<T, Error>) -> Result<(), E>,
    ) -> Result<(), E> {
        let numbers = std::mem::take(&mut *locked(&self.woken.numbers));
        let mut numbers = numbers.into_iter();
        while let Some(number) = numbers.next() {
            // Taken out while it is polled: what it drops or completes may call back into this list.
            let Some(call) = locked(&self.running).calls.remove(&number) else {
                continue;
            };
            // Before the poll, or a wake-up during it is lost.
            call.is_woken.store(false, Ordering::Release);
            if let Some((data, answer)) = self.poll(number, call)
                && let Err(error) = done(data, answer)
            {
                self.woken.push(numbers);
                return Err(error);
            }
        }
        Ok(())
    }

    fn poll(&self, number: u64, mut call: Call<D, T>) -> Option<(D, Result<T, Error>)> {
        match call
            .future
            .as_mut()
            .poll(&mut Context::from_waker(&call.waker))
        {
            Poll::Ready(answer) => Some((call.data, answer)),
            Poll::Pending => {
                locked(&self.running).calls.insert(number, call);
                None
            }
        }
    }

    /// Drops a call, which ends it at the store. Returns its data if it was under way.
    pub fn cancel(&self, number: u64) -> Option<D> {
        let call = locked(&self.running).calls.remove(&number);
        call.map(|call| call.data)
    }

    /// Drops all calls, and returns their data.
    pub fn clear(&self) -> Vec<D> {
        let calls = std::mem::take(&mut locked(&self.running).calls);
        calls.into_values().map(|call| call.data).collect()
    }

    /// Calls `visit` with the data of each call that is under way.
    ///
    /// # Errors
    ///
    /// The first error of `visit`.
    pub fn visit<E>(&self, mut visit: impl FnMut(&D) -> Result<(), E>) -> Result<(), E> {
        let running = locked(&self.running);
        running
            .calls
            .values()
            .try_for_each(|call| visit(&call.data))
    }

    /// Returns how many calls are under way.
    pub fn len(&self) -> usize {
        locked(&self.running).calls.len()
    }

    /// Returns whether no call is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: Signal> Woken<S> {
    fn push(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut list = locked(&self.numbers);
        let was_empty = list.is_empty();
        list.extend(numbers);
        if was_empty && !list.is_empty() {
            // One signal for a batch of answers.
            self.signal.signal();
        }
    }
}

impl<S: Signal> Wake for CallWaker<S> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.woken.push([self.number]);
        }
    }
}

impl<S, D, T> fmt::Debug for Calls<S, D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = locked(&self.running).calls.len();
        f.debug_struct("Calls").field("running", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Signal for Arc<Count> {
        fn signal(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A future that a test completes.
    #[derive(Clone, Default)]
    struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

    impl Gate {
        fn future(&self, answer: u32) -> BoxFuture<u32> {
            let gate = self.clone();
            Box::pin(poll_fn(move |context| {
                let mut state = locked(&gate.0);
                state.1 = Some(context.waker().clone());
                match state.0 {
                    true => Poll::Ready(Ok(answer)),
                    false => Poll::Pending,
                }
            }))
        }

        fn open(&self) {
            locked(&self.0).0 = true;
            self.wake();
        }

        fn wake(&self) {
            let waker = locked(&self.0).1.clone();
            waker.expect("it was polled").wake();
        }
    }

    type Tested = (Arc<Count>, Calls<Arc<Count>, &'static str, u32>);

    fn calls() -> Tested {
        let count = Arc::new(Count::default());
        (Arc::clone(&count), Calls::new(count))
    }

    fn begin(calls: &Calls<Arc<Count>, &'static str, u32>, gate: &Gate, data: &'static str) -> u64 {
        match calls.start(gate.future(7), data) {
            Started::Pending(number) => number,
            Started::Done(..) => panic!("the gate is closed"),
        }
    }

    fn run(calls: &Calls<Arc<Count>, &'static str, u32>) -> Vec<(&'static str, u32)> {
        let mut ended = Vec::new();
        let ran: Result<(), Error> = calls.run(|data, answer| {
            ended.push((data, answer?));
            Ok(())
        });
        ran.unwrap();
        ended
    }

    #[test]
    fn batch_of_answers_is_one_signal() {
        let (count, calls) = calls();
        let gates = [Gate::default(), Gate::default()];
        for (gate, data) in gates.iter().zip(["a", "b"]) {
            begin(&calls, gate, data);
        }
        gates.iter().for_each(Gate::open);
        gates[0].wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(run(&calls), [("a", 7), ("b", 7)]);
        assert!(calls.is_empty() && run(&calls).is_empty());
    }

    #[test]
    fn woken_call_without_an_answer_stays() {
        let (count, calls) = calls();
        let gate = Gate::default();
        begin(&calls, &gate, "a");
        for round in 1..3 {
            gate.wake();
            assert!(run(&calls).is_empty());
            assert_eq!((calls.len(), count.0.load(Ordering::Relaxed)), (1, round));
        }
        gate.open();
        assert_eq!(run(&calls), [("a", 7)]);
    }

    #[test]
    fn ready_call_ends_at_its_start() {
        let (_, calls) = calls();
        let started = calls.start(Box::pin(async { Ok(3) }), "a");
        assert!(matches!(started, Started::Done("a", Ok(3))));
        assert!(calls.is_empty());
    }

    #[test]
    fn cancelled_call_never_ends() {
        let (_, calls) = calls();
        let gate = Gate::default();
        let number = begin(&calls, &gate, "a");
        gate.open();
        assert_eq!(calls.cancel(number), Some("a"));
        assert_eq!(calls.cancel(number), None);
        assert!(run(&calls).is_empty());
    }

    #[test]
    fn call_after_a_failed_completion_stays_woken() {
        let (count, calls) = calls();
        let gates = [Gate::default(), Gate::default()];
        for (gate, data) in gates.iter().zip(["a", "b"]) {
            begin(&calls, gate, data);
            gate.open();
        }
        assert_eq!(calls.run(|data, _| Err(data)), Err("a"));
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        assert_eq!(run(&calls), [("b", 7)]);
    }
}
