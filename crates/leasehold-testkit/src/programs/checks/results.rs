//! One result per request, and leaders in the order of their fences.

use std::collections::BTreeMap;

use super::{History, Violation};
use crate::harness::Impact;
use crate::programs::history::What;
use crate::programs::operation::LEADER;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let mut results = history.events.iter().filter_map(|event| match &event.what {
        What::Result { bytes, .. } => Some(bytes),
        _ => None,
    });
    let Some(first) = results.next() else {
        return Vec::new();
    };
    let differing = results.filter(|result| *result != first).map(|result| {
        let text = format!("the request has the results {first:?} and {result:?}");
        Violation::new("one result", text)
    });
    differing.collect()
}

/// One look at the election.
struct Look {
    began: u64,
    ended: u64,
    /// The fence of the leader that it saw.
    saw: Option<u64>,
}

pub(super) fn check_leaders(history: &History<'_>) -> Vec<Violation> {
    let looks = looks(history);
    let mut found = Vec::new();
    for look in &looks {
        let earlier = looks.iter().filter(|it| it.ended < look.began);
        let newest = earlier.filter_map(|it| it.saw).max();
        if look.saw.is_some() && look.saw < newest {
            found.push(format!("{:?} was seen after {newest:?}", look.saw));
        }
        if released(history, look) {
            found.push(format!("{:?} was seen after its release", look.saw));
        }
        // A server that lost its data has no announcement.
        if history.assumptions.impact == Impact::None
            && let Some(fence) = in_office(history, look)
            && look.saw != Some(fence)
        {
            found.push(format!("{:?} was seen while {fence} led", look.saw));
        }
    }
    let violation = |text| Violation::new("leaders", format!("the leader with fence {text}"));
    found.into_iter().map(violation).collect()
}

fn looks(history: &History<'_>) -> Vec<Look> {
    let mut begun = BTreeMap::new();
    let mut looks = Vec::new();
    for event in history.events {
        match event.what {
            What::Looking { look } => {
                begun.insert((event.client, look), event.at);
            }
            What::Leader { look, fence } => looks.push(Look {
                began: begun.get(&(event.client, look)).copied().unwrap_or(0),
                ended: event.at,
                saw: fence,
            }),
            _ => {}
        }
    }
    looks
}

/// Whether the leader that was seen was released before the look began.
fn released(history: &History<'_>, look: &Look) -> bool {
    let mut leaders = history.holds.iter().filter(|it| it.lock == LEADER);
    let seen = leaders.find(|it| {
        let fence = it.granted.map(|(_, fence)| fence);
        fence.is_some() && fence == look.saw
    });
    seen.is_some_and(|leader| {
        history.events.iter().any(|event| match &event.what {
            What::Released {
                hold,
                is_freed: true,
                ..
            } => (event.client, *hold) == (leader.client, leader.number) && event.at < look.began,
            _ => false,
        })
    })
}

/// Returns the fence of the leader that was announced before the look began, and valid after it ended.
fn in_office(history: &History<'_>, look: &Look) -> Option<u64> {
    let mut leaders = history.holds.iter().filter(|it| it.lock == LEADER);
    leaders.find_map(|leader| {
        let (granted, fence) = leader.granted?;
        let until = leader.valid_before_break(history.breaks.iter());
        let leads = granted < look.began && until.is_some_and(|until| until > look.ended);
        leads.then_some(fence)
    })
}
