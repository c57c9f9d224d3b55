use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::Owner;

use crate::sim::history::{Event, Hold, What};

/// From when to when one guard was valid, as far as its client could know.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) hold: Hold,
    pub(super) client: usize,
    pub(super) key: usize,
    pub(super) owner: Owner,
    pub(super) fence: u64,
    pub(super) asked: Duration,
    pub(super) granted: Duration,
    /// The end of its validity.
    pub(super) end: Duration,
    /// The client's clocks stood still between asking and giving the guard away: no clock tells it
    /// what it missed.
    pub(super) excused: bool,
}

impl Span {
    /// Whether it was over before its holder heard of it.
    pub(super) fn is_stillborn(&self) -> bool {
        self.end <= self.granted
    }
}

struct Open {
    span: Span,
    until: Duration,
    closed: bool,
    /// Nobody will ask the guard again.
    gone: Option<Duration>,
}

/// The spans of all guards, in the order in which they were granted.
pub(super) fn spans(events: &[Event]) -> Vec<Span> {
    let mut asked = BTreeMap::new();
    let mut open = BTreeMap::<Hold, Open>::new();
    let mut order = Vec::new();
    let mut frozen = Vec::<(usize, Duration, Duration)>::new();
    for Event { at, what } in events {
        match what {
            What::Asked {
                hold, client, key, ..
            } => {
                asked.insert(*hold, (*client, *key, *at));
            }
            What::Granted {
                hold,
                owner,
                fence,
                until,
            } => {
                let (client, key, asked) = asked[hold];
                let span = Span {
                    hold: *hold,
                    client,
                    key,
                    owner: *owner,
                    fence: *fence,
                    asked,
                    granted: *at,
                    end: *until,
                    excused: false,
                };
                order.push(*hold);
                open.insert(
                    *hold,
                    Open {
                        span,
                        until: *until,
                        closed: false,
                        gone: None,
                    },
                );
            }
            What::Moved { hold, until } => {
                if let Some(open) = open.get_mut(hold)
                    && *at < open.until
                {
                    open.until = *until;
                }
            }
            What::Lost { hold } => open
                .get_mut(hold)
                .into_iter()
                .for_each(|open| open.close(*at)),
            What::Ended { hold, .. } => {
                if let Some(open) = open.get_mut(hold) {
                    open.close(*at);
                    open.gone = Some(*at);
                }
            }
            What::Crashed { client } => {
                let theirs = open.values_mut().filter(|open| open.span.client == *client);
                for open in theirs {
                    open.close(*at);
                    open.gone.get_or_insert(*at);
                }
            }
            What::Paused {
                client,
                frozen: true,
            } => frozen.push((*client, *at, Duration::MAX)),
            What::Woke { client } => {
                let last = frozen.iter_mut().rfind(|(who, ..)| who == client);
                if let Some((_, _, end)) = last {
                    *end = (*end).min(*at);
                }
            }
            _ => {}
        }
    }
    let mut spans = Vec::new();
    for hold in order {
        let Some(mut open) = open.remove(&hold) else {
            continue;
        };
        open.close(open.until);
        let (from, to) = (open.span.asked, open.gone.unwrap_or(Duration::MAX));
        open.span.excused = frozen.iter().any(|(client, began, ended)| {
            *client == open.span.client && *began <= to && from <= *ended
        });
        spans.push(open.span);
    }
    spans
}

impl Open {
    fn close(&mut self, at: Duration) {
        if !self.closed {
            self.closed = true;
            self.span.end = at.min(self.until);
        }
    }
}
