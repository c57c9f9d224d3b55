use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::{Mode, Owner};

use crate::sim::history::{Event, Hold, What};

/// From when to when one guard was valid, as far as its client could know.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) hold: Hold,
    pub(super) client: usize,
    pub(super) key: usize,
    pub(super) mode: Mode,
    pub(super) owner: Owner,
    pub(super) fence: u64,
    pub(super) asked: Duration,
    /// When the attempt began that was granted.
    pub(super) sent: Duration,
    pub(super) granted: Duration,
    /// From when on it counts on shared mode alone.
    pub(super) downgraded: Option<Duration>,
    /// The end of its validity.
    pub(super) end: Duration,
    /// Until when nobody else may be granted, as it was not given back while it was valid.
    pub(super) shut_until: Duration,
    /// The client's clocks stood still between asking and giving the guard away: no clock tells it
    /// what it missed.
    pub(super) excused: bool,
}

impl Span {
    /// In which mode it is held at an instant.
    pub(super) fn mode_at(&self, at: Duration) -> Mode {
        match self.downgraded {
            Some(since) if since <= at => Mode::Shared,
            _ => self.mode,
        }
    }

    /// Whether it was over before its holder heard of it.
    pub(super) fn is_stillborn(&self) -> bool {
        self.end <= self.granted
    }
}

struct Asked {
    client: usize,
    key: usize,
    mode: Mode,
    delay: Duration,
    at: Duration,
}

struct Open {
    span: Span,
    until: Duration,
    delay: Duration,
    closed: bool,
    /// It was given back while it was valid.
    freed: bool,
    /// Nobody will ask the guard again.
    gone: Option<Duration>,
}

/// The spans of all guards, in the order in which they were granted.
pub(super) fn spans(events: &[Event]) -> Vec<Span> {
    let mut watch = Watch::default();
    for event in events {
        watch.see(event);
    }
    watch.spans()
}

#[derive(Default)]
struct Watch {
    /// Who asked for what, and when.
    asked: BTreeMap<Hold, Asked>,
    /// When each attempt began.
    sent: BTreeMap<Owner, Duration>,
    guards: BTreeMap<Hold, Open>,
    order: Vec<Hold>,
    /// The client, and between which instants its clocks stood still.
    frozen: Vec<(usize, Duration, Duration)>,
}

impl Watch {
    fn see(&mut self, Event { at, what }: &Event) {
        let at = *at;
        match what {
            What::Asked {
                hold,
                client,
                key,
                mode,
                delay,
                ..
            } => {
                let asked = Asked {
                    client: *client,
                    key: *key,
                    mode: *mode,
                    delay: *delay,
                    at,
                };
                self.asked.insert(*hold, asked);
            }
            What::Sent { owner, .. } => {
                self.sent.entry(*owner).or_insert(at);
            }
            What::Granted {
                hold,
                owner,
                fence,
                until,
            } => {
                self.granted(at, *hold, *owner, *fence, *until);
            }
            What::Moved { hold, until } => {
                if let Some(open) = self.guards.get_mut(hold)
                    && at < open.until
                {
                    open.until = *until;
                }
            }
            What::Downgraded { hold } => {
                if let Some(open) = self.guards.get_mut(hold) {
                    open.span.downgraded.get_or_insert(at);
                }
            }
            What::Lost { hold } => {
                if let Some(open) = self.guards.get_mut(hold) {
                    open.close(at);
                }
            }
            What::Ended { hold, .. } => {
                if let Some(open) = self.guards.get_mut(hold) {
                    open.freed = !open.closed && at < open.until;
                    open.give_away(at);
                }
            }
            What::Crashed { client, .. } => {
                let guards = self.guards.values_mut();
                let theirs = guards.filter(|open| open.span.client == *client);
                theirs.for_each(|open| open.give_away(at));
            }
            What::Paused {
                client,
                frozen: true,
            } => {
                self.frozen.push((*client, at, Duration::MAX));
            }
            What::Woke { client } => {
                let last = self.frozen.iter_mut().rfind(|(who, ..)| who == client);
                if let Some((_, _, end)) = last {
                    *end = (*end).min(at);
                }
            }
            _ => {}
        }
    }

    fn granted(&mut self, at: Duration, hold: Hold, owner: Owner, fence: u64, until: Duration) {
        let asked = &self.asked[&hold];
        let span = Span {
            hold,
            client: asked.client,
            key: asked.key,
            mode: asked.mode,
            owner,
            fence,
            asked: asked.at,
            sent: self.sent.get(&owner).copied().unwrap_or(asked.at),
            granted: at,
            downgraded: None,
            end: until,
            shut_until: until,
            excused: false,
        };
        let open = Open {
            span,
            until,
            delay: asked.delay,
            closed: false,
            freed: false,
            gone: None,
        };
        self.order.push(hold);
        self.guards.insert(hold, open);
    }

    fn spans(mut self) -> Vec<Span> {
        let mut spans = Vec::new();
        for hold in self.order {
            let Some(mut open) = self.guards.remove(&hold) else {
                continue;
            };
            open.close(open.until);
            open.span.shut_until = if open.freed || open.delay.is_zero() {
                open.span.end
            } else {
                open.until + open.delay
            };
            let (from, to) = (open.span.asked, open.gone.unwrap_or(Duration::MAX));
            open.span.excused = self.frozen.iter().any(|(client, began, ended)| {
                *client == open.span.client && *began <= to && from <= *ended
            });
            spans.push(open.span);
        }
        spans
    }
}

impl Open {
    fn close(&mut self, at: Duration) {
        if !self.closed {
            self.closed = true;
            self.span.end = at.min(self.until);
        }
    }

    fn give_away(&mut self, at: Duration) {
        self.close(at);
        self.gone.get_or_insert(at);
    }
}
