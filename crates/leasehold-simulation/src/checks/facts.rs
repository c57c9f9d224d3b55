use std::collections::BTreeMap;

use leasehold::Mode;

use crate::history::{Asked, Denial, Event, Manner, Wait, What};
use crate::plan::Plan;
use crate::time::Time;

/// What the checks share: each wait and its guard, from its beginning to its end.
pub(super) struct Facts<'a> {
    pub(super) events: &'a [Event],
    pub(super) plan: &'a Plan,
    pub(super) waits: BTreeMap<Wait, WaitFacts>,
    /// The span in which no fault disturbs the clients.
    pub(super) calm: Option<(Time, Time)>,
    pub(super) cleared: Time,
    /// The spans in which the clocks of a client were stopped.
    frozen: Vec<(usize, Time, Time)>,
}

/// One `acquire`, and the guard that resulted from it.
#[derive(Clone, Debug)]
pub(super) struct WaitFacts {
    pub(super) asked: Asked,
    pub(super) at: Time,
    /// When the wait ended; `Time::MAX` if it did not.
    pub(super) over: Time,
    pub(super) end: Option<End>,
    pub(super) span: Option<Span>,
    /// When its client died.
    pub(super) died: Option<Time>,
    pub(super) detached: Option<Time>,
    /// When a server first ran a request that took the lease.
    taken: Option<Time>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Granted,
    Denied(Denial),
    Cancelled,
    Died,
}

/// The span in which a guard was valid, according to its client.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// When the request was sent, or a moment before.
    asked: Time,
    pub(super) fence: u64,
    pub(super) granted: Time,
    /// The deadline, after all renewals.
    pub(super) until: Time,
    pub(super) downgraded: Option<Time>,
    /// When the guard was lost or released, if that was before its deadline.
    pub(super) closed: Option<Time>,
    /// When the caller released the guard.
    pub(super) gone: Option<Time>,
    /// It was released while it was valid.
    pub(super) is_clean: bool,
    /// The client's clocks were stopped meanwhile, so it could not know.
    pub(super) excused: bool,
}

impl Span {
    pub(super) fn end(&self) -> Time {
        self.closed.unwrap_or(Time::MAX).min(self.until)
    }

    /// Whether it ended before its holder knew of it.
    pub(super) fn is_stillborn(&self) -> bool {
        self.end() <= self.granted
    }
}

impl WaitFacts {
    /// Whether it was open at `at`.
    pub(super) fn is_open(&self, at: Time) -> bool {
        self.at <= at && at < self.over
    }

    /// The mode of its guard at `at`.
    pub(super) fn mode(&self, at: Time) -> Mode {
        let downgraded = self.span.as_ref().and_then(|span| span.downgraded);
        match downgraded {
            Some(since) if since <= at => Mode::Shared,
            _ => self.asked.mode,
        }
    }

    /// Until when no other grant may follow: the end of the guard, plus the lock delay.
    pub(super) fn closed_until(&self, span: &Span) -> Time {
        if span.is_clean || self.asked.delay == 0 {
            span.end()
        } else {
            span.until + self.asked.delay
        }
    }

    /// Returns the guard, unless it made no promise.
    pub(super) fn promise(&self) -> Option<&Span> {
        let span = self.span.as_ref()?;
        (!span.excused && !span.is_stillborn()).then_some(span)
    }

    fn close(&mut self, at: Time, end: End) {
        if self.end.is_none() {
            (self.over, self.end) = (at, Some(end));
        }
    }
}

impl<'a> Facts<'a> {
    pub(super) fn new(events: &'a [Event], plan: &'a Plan) -> Self {
        let mut facts = Self {
            events,
            plan,
            waits: BTreeMap::new(),
            calm: None,
            cleared: Time::MAX,
            frozen: Vec::new(),
        };
        let mut frozen = Vec::new();
        for event in events {
            facts.see(event.at, &event.what, &mut frozen);
        }
        for wait in facts.waits.values_mut() {
            let Some(span) = &mut wait.span else { continue };
            let gone = span.gone.unwrap_or(Time::MAX);
            span.excused = frozen.iter().any(|(client, from, to)| {
                *client == wait.asked.client && *from <= gone && span.asked <= *to
            });
        }
        facts.frozen = frozen;
        facts
    }

    /// Returns for how long the clocks of a client were stopped between these instants.
    pub(super) fn frozen_for(&self, client: usize, from: Time, to: Time) -> Time {
        let spans = self.frozen.iter().filter(|(it, ..)| *it == client);
        let within = spans.map(|(_, begin, end)| to.min(*end).saturating_sub(from.max(*begin)));
        within.sum()
    }

    fn see(&mut self, at: Time, what: &What, frozen: &mut Vec<(usize, Time, Time)>) {
        if let Some(wait) = wait_of(what)
            && let Some(wait) = self.waits.get_mut(&wait)
        {
            return wait.see(at, what);
        }
        match what {
            What::Asked(asked) => {
                let wait = WaitFacts {
                    asked: *asked,
                    at,
                    over: Time::MAX,
                    end: None,
                    span: None,
                    died: None,
                    detached: None,
                    taken: None,
                };
                self.waits.insert(asked.wait, wait);
            }
            What::Executed(it) if it.own_before().is_none() && it.own_after().is_none() => {}
            What::Executed(it) => {
                if let Some(wait) = self.waits.get_mut(&it.wait) {
                    wait.taken = it.own_after().map(|_| wait.taken.unwrap_or(at));
                }
            }
            What::Crashed { client, .. } => {
                for wait in self.waits.values_mut() {
                    if wait.asked.client == *client {
                        wait.see(at, what);
                    }
                }
            }
            What::Paused {
                client,
                frozen: true,
            } => frozen.push((*client, at, Time::MAX)),
            What::Woke { client } => {
                if let Some((.., to)) = frozen.iter_mut().rfind(|(it, ..)| it == client) {
                    *to = at.min(*to);
                }
            }
            What::Cleared => self.cleared = at,
            What::Calm => self.calm = Some((at, Time::MAX)),
            What::Settled => {
                if let Some((_, to)) = &mut self.calm {
                    *to = at;
                }
            }
            _ => {}
        }
    }

    /// Whether no fault disturbs the clients at `at`.
    pub(super) fn is_calm(&self, at: Time) -> bool {
        self.calm.is_some_and(|(from, to)| from <= at && at < to)
    }

    /// Returns the waits whose guards were promises, in the order of their grants.
    pub(super) fn promises(&self) -> Vec<(&WaitFacts, &Span)> {
        let all = self.waits.values();
        let all = all.filter_map(|wait| Some((wait, wait.promise()?)));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(_, span)| span.granted);
        all
    }
}

impl WaitFacts {
    fn see(&mut self, at: Time, what: &What) {
        match what {
            What::Granted { fence, until, .. } => {
                self.close(at, End::Granted);
                let taken = self.taken.unwrap_or(self.at);
                self.span = Some(Span {
                    asked: taken.saturating_sub(REQUEST_MAX).max(self.at),
                    fence: *fence,
                    granted: at,
                    until: *until,
                    downgraded: None,
                    closed: None,
                    gone: None,
                    is_clean: false,
                    excused: false,
                });
            }
            What::Denied { reason, .. } => self.close(at, End::Denied(*reason)),
            What::Cancelled { .. } => self.close(at, End::Cancelled),
            What::Crashed { .. } => {
                self.close(at, End::Died);
                self.died.get_or_insert(at);
                if let Some(span) = &mut self.span {
                    span.closed.get_or_insert(at);
                    span.gone.get_or_insert(at);
                }
            }
            What::Detached { .. } => {
                self.detached.get_or_insert(at);
            }
            _ => self.see_guard(at, what),
        }
    }

    fn see_guard(&mut self, at: Time, what: &What) {
        let Some(span) = &mut self.span else { return };
        match what {
            What::Extended { until, .. } if at < span.until => span.until = *until,
            What::Lost { .. } => {
                span.closed.get_or_insert(at);
            }
            What::Downgraded { .. } => {
                span.downgraded.get_or_insert(at);
            }
            What::Ended { .. } => {
                span.is_clean = span.closed.is_none() && at < span.until;
                span.closed.get_or_insert(at);
                span.gone.get_or_insert(at);
            }
            _ => {}
        }
    }
}

fn wait_of(what: &What) -> Option<Wait> {
    match what {
        What::Granted { wait, .. }
        | What::Denied { wait, .. }
        | What::Cancelled { wait }
        | What::Extended { wait, .. }
        | What::Lost { wait }
        | What::Downgraded { wait }
        | What::Ended { wait }
        | What::Detached { wait } => Some(*wait),
        _ => None,
    }
}

/// Whether these modes are compatible.
pub(super) fn are_compatible(modes: &[Mode]) -> bool {
    let Some((first, others)) = modes.split_first().filter(|(_, others)| !others.is_empty()) else {
        return true;
    };
    let alike = others.iter().all(|other| other == first);
    match first {
        Mode::Exclusive => false,
        Mode::Shared => alike,
        Mode::Permit(permits) => alike && modes.len() <= permits.get() as usize,
    }
}

/// Whether a request waits in the queue.
pub(super) fn is_queued(wait: &WaitFacts) -> bool {
    wait.asked.manner == Manner::Queued
}

/// A request is in flight for at most this long, unless its client was stopped.
const REQUEST_MAX: Time = 400_000;
