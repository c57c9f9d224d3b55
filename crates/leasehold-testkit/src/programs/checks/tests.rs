use super::{Assumptions, check};
use crate::harness::Impact;
use crate::programs::history::{Event, HeldMode, What};
use crate::programs::operation::{LEADER, LockIndex, Manner, PERMITS};

const UNDISTURBED: Assumptions = Assumptions {
    is_fifo: true,
    is_undisturbed: true,
    impact: Impact::None,
};

const SECOND: u64 = 1_000_000_000;

/// A client that holds a lock from one second to another.
#[derive(Clone, Copy)]
struct Held {
    client: usize,
    lock: LockIndex,
    mode: HeldMode,
    fence: u64,
    asked: u64,
    granted: u64,
    valid_until: u64,
}

const FIRST: Held = Held {
    client: 0,
    lock: 0,
    mode: HeldMode::Exclusive,
    fence: 7,
    asked: 0,
    granted: 1,
    valid_until: 4,
};

const SECOND_HELD: Held = Held {
    client: 1,
    fence: 8,
    asked: 2,
    granted: 5,
    valid_until: 6,
    ..FIRST
};

fn event(at: u64, client: usize, what: What) -> Event {
    let at = at * SECOND;
    Event { at, client, what }
}

impl Held {
    fn events(self) -> [Event; 3] {
        let (hold, lock, mode) = (0, self.lock, self.mode);
        let asked = What::Asked {
            hold,
            lock,
            mode,
            manner: Manner::Wait(10_000),
            is_queued: true,
        };
        let granted = What::Granted {
            hold,
            fence: self.fence,
        };
        let until = Some((self.valid_until + 1) * SECOND);
        [
            event(self.asked, self.client, asked),
            event(self.granted, self.client, granted),
            event(self.valid_until, self.client, What::Valid { hold, until }),
        ]
    }
}

/// The promises that the history breaks.
fn broken(
    holds: &[Held],
    others: impl IntoIterator<Item = Event>,
    assumptions: Assumptions,
) -> Vec<&'static str> {
    let mut events: Vec<Event> = holds.iter().flat_map(|hold| hold.events()).collect();
    events.extend(others);
    events.sort_by_key(|event| event.at);
    let found = check(&events, assumptions);
    found
        .into_iter()
        .map(|violation| violation.promise)
        .collect()
}

#[test]
fn holds_in_turn_break_nothing() {
    assert_eq!(broken(&[FIRST, SECOND_HELD], [], UNDISTURBED), [""; 0]);
}

#[test]
fn two_valid_guards_break_exclusion() {
    let second = Held {
        granted: 3,
        ..SECOND_HELD
    };
    assert_eq!(broken(&[FIRST, second], [], UNDISTURBED), ["exclusion"]);
    let ends = Assumptions {
        impact: Impact::EndsLeases,
        ..UNDISTURBED
    };
    assert_eq!(broken(&[FIRST, second], [], ends), [""; 0]);
    let readers = [FIRST, second].map(|hold| Held {
        mode: HeldMode::Shared,
        ..hold
    });
    assert_eq!(broken(&readers, [], UNDISTURBED), [""; 0]);
    let breaking = What::Breaking {
        lock: 0,
        fence: 7,
        at_once: true,
    };
    let breaking = [event(2, 2, breaking)];
    assert_eq!(broken(&[FIRST, second], breaking, UNDISTURBED), [""; 0]);
}

#[test]
fn downgraded_guard_excludes_writers_alone() {
    let downgrading = || [event(2, 0, What::Downgrading { hold: 0 })];
    let with = |mode| Held {
        mode,
        granted: 3,
        ..SECOND_HELD
    };
    let reader = [FIRST, with(HeldMode::Shared)];
    assert_eq!(broken(&reader, downgrading(), UNDISTURBED), [""; 0]);
    let writer = [FIRST, with(HeldMode::Exclusive)];
    assert_eq!(broken(&writer, downgrading(), UNDISTURBED), ["exclusion"]);
}

#[test]
fn lost_guard_has_no_downgrade() {
    let lost = Held {
        valid_until: 2,
        ..FIRST
    };
    let downgrade = event(5, 0, What::Downgrading { hold: 0 });
    let next = Held {
        granted: 4,
        valid_until: 8,
        ..SECOND_HELD
    };
    assert_eq!(broken(&[lost, next], [downgrade], UNDISTURBED), [""; 0]);
}

#[test]
fn third_permit_of_two_is_reported() {
    let holders: Vec<Held> = (0..3)
        .map(|client| Held {
            client,
            lock: PERMITS,
            mode: HeldMode::Permit,
            fence: 7 + client as u64,
            ..FIRST
        })
        .collect();
    assert_eq!(broken(&holders[..2], [], UNDISTURBED), [""; 0]);
    assert_eq!(broken(&holders, [], UNDISTURBED), ["permits"]);
}

#[test]
fn fence_that_does_not_grow_is_reported() {
    let smaller = Held {
        fence: 6,
        ..SECOND_HELD
    };
    let found = broken(&[FIRST, smaller], [], UNDISTURBED);
    assert!(found.contains(&"fences"), "{found:?}");
}

#[test]
fn guard_beyond_its_end_is_reported() {
    let late = What::Valid {
        hold: 0,
        until: Some(5 * SECOND),
    };
    assert_eq!(broken(&[FIRST], [event(6, 0, late)], UNDISTURBED), ["loss"]);
    let reason = leasehold::LostReason::Gone.to_string();
    let lost = || What::Lost {
        hold: 0,
        reason: reason.clone(),
    };
    let valid = What::Valid {
        hold: 0,
        until: None,
    };
    let again = [event(4, 0, lost()), event(5, 0, valid)];
    assert_eq!(broken(&[FIRST], again, UNDISTURBED), ["loss"]);
    // Its deadline is one second after it was last valid.
    let early = [event(4, 0, lost())];
    assert_eq!(broken(&[FIRST], early, UNDISTURBED), ["keeping"]);
}

#[test]
fn waiter_that_passes_another_is_reported() {
    let passed = Held {
        granted: 8,
        valid_until: 9,
        fence: 9,
        ..FIRST
    };
    let answered = Held { lock: 1, ..FIRST };
    let mut other = answered.events().map(|mut event| {
        if let What::Asked { hold, .. } | What::Granted { hold, .. } | What::Valid { hold, .. } =
            &mut event.what
        {
            *hold = 1;
        }
        event
    });
    other[0].at = 0;
    let found = broken(&[passed, SECOND_HELD], other, UNDISTURBED);
    assert_eq!(found, ["order"]);
    assert_eq!(broken(&[passed, SECOND_HELD], [], UNDISTURBED), [""; 0]);
}

/// A look at the election, which takes a second.
fn look(at: u64, look: u32, fence: Option<u64>) -> [Event; 2] {
    let seen = What::Leader { look, fence };
    [event(at, 3, What::Looking { look }), event(at + 1, 3, seen)]
}

#[test]
fn unseen_leader_is_reported() {
    let leader = Held {
        lock: LEADER,
        ..FIRST
    };
    for (fence, found) in [
        (Some(7), None),
        (Some(9), Some("leaders")),
        (None, Some("leaders")),
    ] {
        let found: Vec<&str> = found.into_iter().collect();
        assert_eq!(broken(&[leader], look(2, 0, fence), UNDISTURBED), found);
    }
    let breaking = What::Breaking {
        lock: LEADER,
        fence: 7,
        at_once: false,
    };
    let breaking = [event(2, 1, breaking)];
    let seen = breaking.into_iter().chain(look(2, 0, None));
    assert_eq!(broken(&[leader], seen, UNDISTURBED), [""; 0]);
}

#[test]
fn second_result_and_former_leader_are_reported() {
    let result = |at, bytes: &str| {
        let (bytes, ran) = (bytes.into(), true);
        event(at, 0, What::Result { bytes, ran })
    };
    let same = [result(1, "a"), result(2, "a")];
    assert_eq!(broken(&[], same, UNDISTURBED), [""; 0]);
    let differing = [result(1, "a"), result(2, "b")];
    assert_eq!(broken(&[], differing, UNDISTURBED), ["one result"]);
    let back = look(1, 0, Some(8)).into_iter().chain(look(3, 1, Some(7)));
    assert_eq!(broken(&[], back, UNDISTURBED), ["leaders"]);
    let leader = Held {
        lock: LEADER,
        ..FIRST
    };
    let released = What::Released {
        hold: 0,
        is_freed: true,
        text: String::new(),
    };
    let released = [event(5, 0, released)];
    let seen = released.into_iter().chain(look(6, 0, Some(7)));
    assert_eq!(broken(&[leader], seen, UNDISTURBED), ["leaders"]);
}

#[test]
fn late_answer_is_reported_without_faults() {
    let late = Held {
        granted: 20,
        valid_until: 21,
        ..FIRST
    };
    assert_eq!(broken(&[late], [], UNDISTURBED), ["limits"]);
    let disturbed = Assumptions {
        is_undisturbed: false,
        ..UNDISTURBED
    };
    assert_eq!(broken(&[late], [], disturbed), [""; 0]);
}

#[test]
fn error_that_no_fault_explains_is_reported() {
    let failed = |is_unexpected| {
        let (call, text) = ("renew".into(), "damaged".into());
        [event(
            1,
            0,
            What::Failed {
                call,
                is_unexpected,
                text,
            },
        )]
    };
    assert_eq!(broken(&[], failed(true), UNDISTURBED), ["errors"]);
    assert_eq!(broken(&[], failed(false), UNDISTURBED), [""; 0]);
}
