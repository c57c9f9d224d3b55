//! A client, and what it asks for.

use std::fmt::Debug;
use std::time::Duration;

use leasehold::Error;
use leasehold_bridge::{
    AcquireRequest, BoxFuture, Breaking, Campaign, LazyClient, OnceRequest, Options, Target, Wait,
    span,
};
use pyo3::prelude::*;
use serde::Serialize;

use crate::answer::Answer;
use crate::errors::OrRaise;
use crate::operation::Operation;

/// A client that opens at its first call.
#[pyclass(frozen, weakref, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct Client(LazyClient);

/// A lock, a semaphore, or a set of locks, with its options.
#[pyclass(frozen, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct Request {
    client: Py<Client>,
    request: AcquireRequest,
}

/// A request that takes effect once.
#[pyclass(frozen, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct Once {
    client: Py<Client>,
    request: OnceRequest,
}

/// An election.
#[pyclass(frozen, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct Election {
    client: Py<Client>,
    campaign: Campaign,
}

/// The changes of an election.
#[pyclass(frozen, module = "leasehold._leasehold")]
#[derive(Debug)]
pub(crate) struct Watch(leasehold_bridge::Watch);

/// `ttl`, `max_hold`, `lock_delay`, `shared` and `barging`.
#[derive(FromPyObject)]
pub(crate) struct RawOptions(Option<f64>, Option<f64>, Option<f64>, bool, bool);

/// One name, or several.
#[derive(FromPyObject)]
pub(crate) enum Names {
    One(String),
    Several(Vec<String>),
}

impl RawOptions {
    fn parse(&self) -> Result<Options, Error> {
        let optional = |seconds: Option<f64>| -> Result<Option<Duration>, Error> {
            seconds.map(span).transpose()
        };
        Ok(Options {
            ttl: optional(self.0)?,
            wait: Wait::Forever,
            max_hold: optional(self.1)?,
            lock_delay: optional(self.2)?,
            shared: self.3,
            barging: self.4,
        })
    }
}

impl Client {
    fn open(&self) -> PyResult<leasehold::Client> {
        self.0.get().or_raise()
    }
}

fn operation<T: Serialize + 'static>(future: Result<BoxFuture<T>, Error>) -> PyResult<Operation> {
    future.map(Operation::value).or_raise()
}

#[pymethods]
impl Client {
    #[new]
    fn new(url: String, label: Option<String>) -> PyResult<Self> {
        LazyClient::new(url, label, "python").map(Self).or_raise()
    }

    #[getter]
    fn url(&self) -> &str {
        self.0.url()
    }

    #[getter]
    fn label(&self) -> Option<&str> {
        self.0.label()
    }

    #[getter]
    fn is_used(&self) -> bool {
        self.0.is_used()
    }

    fn init(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.0.init()).or_raise()
    }

    fn close(&self, limit: f64) -> PyResult<Operation> {
        let limit = span(limit).or_raise()?;
        Ok(Operation::value(self.0.close(limit)))
    }

    /// `permits` of 0 asks for the whole lock.
    fn request(
        this: Py<Self>,
        names: Names,
        permits: u32,
        options: RawOptions,
    ) -> PyResult<Request> {
        let target = match names {
            Names::Several(names) => Target::Set(names),
            Names::One(name) if permits > 0 => Target::Permit(name, permits),
            Names::One(name) => Target::Lock(name),
        };
        let options = options.parse().or_raise()?;
        Ok(Request {
            client: this,
            request: AcquireRequest { target, options },
        })
    }

    fn once(
        this: Py<Self>,
        name: String,
        payload: Vec<u8>,
        retention: Option<f64>,
        options: RawOptions,
    ) -> PyResult<Once> {
        let request = OnceRequest {
            name,
            payload,
            retention: retention.map(span).transpose().or_raise()?,
            options: options.parse().or_raise()?,
        };
        Ok(Once {
            client: this,
            request,
        })
    }

    fn election(
        this: Py<Self>,
        name: String,
        value: String,
        poll_interval: Option<f64>,
        options: RawOptions,
    ) -> PyResult<Election> {
        let campaign = Campaign {
            name,
            value,
            poll_interval: poll_interval.map(span).transpose().or_raise()?,
            options: options.parse().or_raise()?,
        };
        Ok(Election {
            client: this,
            campaign,
        })
    }

    fn holders(&self, name: String) -> PyResult<Operation> {
        operation(self.0.holders(name))
    }

    fn waiters(&self, name: String) -> PyResult<Operation> {
        operation(self.0.waiters(name))
    }

    fn list_locks(&self, pattern: &str, limit: usize) -> PyResult<Operation> {
        operation(self.0.list_locks(pattern, limit))
    }

    fn health(&self) -> PyResult<Operation> {
        operation(self.0.health())
    }

    fn break_lock(
        &self,
        name: String,
        fence: u64,
        at_once: bool,
        user: Option<String>,
        reason: Option<String>,
    ) -> PyResult<Operation> {
        operation(self.0.break_lock(Breaking {
            name,
            fence,
            at_once,
            user,
            reason,
        }))
    }

    fn adopt(&self, handle: &str) -> PyResult<Operation> {
        let adopting = self.0.adopt(handle).or_raise()?;
        Ok(Operation::new(adopting, |held| Answer::Held(Some(held))))
    }

    fn renew_handle(&self, handle: &str) -> PyResult<Operation> {
        operation(self.0.renew_handle(handle))
    }

    fn release_handle(&self, handle: &str) -> PyResult<Operation> {
        operation(self.0.release_handle(handle))
    }
}

#[pymethods]
impl Request {
    /// `wait` of `None` waits without an end.
    fn acquire(&self, wait: Option<f64>) -> PyResult<Operation> {
        self.start(Wait::of_seconds(wait).or_raise()?)
    }

    fn try_acquire(&self) -> PyResult<Operation> {
        self.start(Wait::Try)
    }
}

impl Request {
    fn start(&self, wait: Wait) -> PyResult<Operation> {
        let mut request = self.request.clone();
        request.options.wait = wait;
        let acquiring = request.acquire(&self.client.get().open()?);
        Ok(Operation::new(acquiring, Answer::Held))
    }
}

#[pymethods]
impl Once {
    fn begin(&self, wait: Option<f64>) -> PyResult<Operation> {
        self.start(Wait::of_seconds(wait).or_raise()?)
    }

    fn try_begin(&self) -> PyResult<Operation> {
        self.start(Wait::Try)
    }

    fn result(&self) -> PyResult<Operation> {
        let result = self.request.clone().result(&self.client.get().open()?);
        Ok(Operation::new(result, Answer::Result))
    }

    fn forget(&self) -> PyResult<Operation> {
        let request = self.request.clone();
        Ok(Operation::value(request.forget(&self.client.get().open()?)))
    }
}

impl Once {
    fn start(&self, wait: Wait) -> PyResult<Operation> {
        let mut request = self.request.clone();
        request.options.wait = wait;
        let step = request.begin(&self.client.get().open()?);
        Ok(Operation::new(step, Answer::Step))
    }
}

#[pymethods]
impl Election {
    fn campaign(&self, wait: Option<f64>) -> PyResult<Operation> {
        let mut campaign = self.campaign.clone();
        campaign.options.wait = Wait::of_seconds(wait).or_raise()?;
        let winning = campaign.campaign(&self.client.get().open()?);
        Ok(Operation::new(winning, |held| Answer::Held(Some(held))))
    }

    fn leader(&self) -> PyResult<Operation> {
        let campaign = self.campaign.clone();
        Ok(Operation::value(
            campaign.leader(&self.client.get().open()?),
        ))
    }

    fn observe(&self) -> PyResult<Watch> {
        let campaign = self.campaign.clone();
        campaign
            .observe(&self.client.get().open()?)
            .map(Watch)
            .or_raise()
    }
}

#[pymethods]
impl Watch {
    fn next(&self) -> PyResult<Operation> {
        operation(self.0.next())
    }
}
