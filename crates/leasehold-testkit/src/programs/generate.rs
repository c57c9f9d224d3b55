//! The random choice of programs.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::operation::{
    Acquire, ClientProgram, Fault, FaultStep, LEADER, LockIndex, Manner, Millis, Operation,
    PERMITS, PathFault, Program, REQUEST, Ttl,
};

/// What a store's clients and servers can suffer, and what it offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capcapabilities {
    pub(crate) shared: bool,
    pub(crate) permits: bool,
    pub(crate) handles: bool,
    pub(crate) breaks: bool,
    pub(crate) records: bool,
    pub(crate) processes: bool,
    /// How many servers.
    pub(crate) servers: usize,
    /// How many faults of servers.
    pub(crate) server_faults: usize,
}

/// Returns all programs for a store. Some use only records, since these are rare among all operations.
pub(crate) fn programs(capabilities: Capcapabilities) -> BoxedStrategy<Program> {
    // Most operations need a guard.
    let first = prop::option::weighted(0.8, acquire(capabilities).prop_map(Operation::Acquire));
    let on_locks = program(first.boxed(), operation(capabilities), capabilities);
    if !capabilities.records {
        return on_locks;
    }
    let mut all = on_records(capabilities);
    all.push((4, span(0..500).prop_map(Operation::Work).boxed()));
    all.push((4, Just(Operation::Meet).boxed()));
    let operation = Union::new_weighted(all).boxed();
    let on_records = program(Just(None).boxed(), operation, capabilities);
    prop_oneof![5 => on_locks, 1 => on_records].boxed()
}

fn program(
    first: BoxedStrategy<Option<Operation>>,
    operation: BoxedStrategy<Operation>,
    capabilities: Capcapabilities,
) -> BoxedStrategy<Program> {
    let task = (first, vec(operation, 1..=7))
        .prop_map(|(first, rest)| first.into_iter().chain(rest).collect());
    let client = vec(task, 1..=2).prop_map(|tasks| ClientProgram { tasks });
    (vec(client, 2..=4), faults(capabilities))
        .prop_map(|(clients, faults)| Program { clients, faults })
        .boxed()
}

fn operation(capabilities: Capcapabilities) -> BoxedStrategy<Operation> {
    let mut all: Vec<(u32, BoxedStrategy<Operation>)> = vec![
        (30, acquire(capabilities).prop_map(Operation::Acquire).boxed()),
        (
            3,
            (manner(), cancel())
                .prop_map(|(manner, cancel_after)| Operation::AcquireAll {
                    manner,
                    cancel_after,
                })
                .boxed(),
        ),
        (22, span(0..1_500).prop_map(Operation::Work).boxed()),
        (8, Just(Operation::Meet).boxed()),
        (14, Just(Operation::Release).boxed()),
        (4, Just(Operation::Drop).boxed()),
        (3, Just(Operation::CancelRelease).boxed()),
        (3, Just(Operation::Renew).boxed()),
        (3, Just(Operation::Reenter).boxed()),
        (
            2,
            any::<bool>()
                .prop_map(|close| Operation::Restart { close })
                .boxed(),
        ),
    ];
    if capabilities.shared {
        all.push((4, Just(Operation::Downgrade).boxed()));
    }
    if capabilities.handles {
        let handles = [
            Operation::Detach,
            Operation::Adopt,
            Operation::RenewHandle,
            Operation::ReleaseHandle,
        ];
        all.extend(handles.map(|operation| (2, Just(operation).boxed())));
    }
    if capabilities.breaks {
        all.push((6, break_one_of(0..=PERMITS)));
    }
    if capabilities.records {
        all.extend(on_records(capabilities));
    }
    Union::new_weighted(all).boxed()
}

/// Requests that run once, and elections.
fn on_records(capabilities: Capcapabilities) -> Vec<(u32, BoxedStrategy<Operation>)> {
    let once = (span(0..600), cancel())
        .prop_map(|(work, cancel_after)| Operation::Once { work, cancel_after });
    let lead =
        (span(0..1_500), span(0..500)).prop_map(|(wait, work)| Operation::Lead { wait, work });
    let mut all = vec![
        (6, once.boxed()),
        (4, lead.boxed()),
        (4, Just(Operation::Observe).boxed()),
    ];
    if capabilities.breaks {
        all.push((2, break_one_of(LEADER..=REQUEST)));
    }
    all
}

fn break_one_of(locks: RangeInclusive<LockIndex>) -> BoxedStrategy<Operation> {
    (locks, any::<bool>())
        .prop_map(|(lock, at_once)| Operation::Break { lock, at_once })
        .boxed()
}

/// After how long the caller drops the future of a call.
fn cancel() -> impl Strategy<Value = Option<Millis>> {
    prop_oneof![3 => Just(None), 1 => span(0..400).prop_map(Some)]
}

fn acquire(capabilities: Capcapabilities) -> impl Strategy<Value = Acquire> {
    let lock = match capabilities.permits {
        true => prop_oneof![4 => Just(0), 2 => Just(1), 2 => Just(PERMITS)].boxed(),
        false => prop_oneof![2 => Just(0), 1 => Just(1)].boxed(),
    };
    let shared = match capabilities.shared {
        true => prop::bool::weighted(0.3).boxed(),
        false => Just(false).boxed(),
    };
    let ttl = prop_oneof![2 => Just(Ttl::Short), 1 => Just(Ttl::Long)];
    let cancel = prop_oneof![4 => Just(None), 1 => span(0..400).prop_map(Some)];
    (lock, shared, manner(), ttl, cancel).prop_map(|(lock, shared, manner, ttl, cancel_after)| {
        Acquire {
            lock,
            shared: shared && lock != PERMITS,
            manner,
            ttl,
            cancel_after,
        }
    })
}

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        1 => Just(Manner::Try),
        4 => span(200..3_000).prop_map(Manner::Wait),
        2 => span(200..1_500).prop_map(Manner::Barge),
    ]
}

fn faults(capabilities: Capcapabilities) -> BoxedStrategy<Vec<FaultStep>> {
    let mut all: Vec<(u32, BoxedStrategy<Fault>)> = Vec::new();
    if capabilities.servers > 0 {
        let kind = prop_oneof![
            3 => Just(PathFault::Cut),
            4 => Just(PathFault::LateRequests),
            1 => Just(PathFault::SlowAnswers),
            1 => Just(PathFault::SlowRequests),
            2 => Just(PathFault::Mute),
            2 => Just(PathFault::Frozen),
            2 => Just(PathFault::HalfOpen),
            1 => Just(PathFault::Refusing),
        ];
        let server = match capabilities.servers {
            1 => Just(None).boxed(),
            count => prop::option::of(0..count as u8).boxed(),
        };
        let path = (0..4_u8, server, kind).prop_map(|(client, server, kind)| Fault::Path {
            client,
            server,
            kind,
        });
        all.push((8, path.boxed()));
    }
    if capabilities.processes {
        all.push((3, (0..4_u8).prop_map(Fault::StopClient).boxed()));
        all.push((1, (0..4_u8).prop_map(Fault::KillClient).boxed()));
    }
    if capabilities.server_faults > 0 {
        let fault = (0..capabilities.server_faults as u8).prop_map(Fault::Server);
        all.push((4, fault.boxed()));
    }
    if all.is_empty() {
        return Just(Vec::new()).boxed();
    }
    let step = (span(0..3_000), span(100..2_500), Union::new_weighted(all))
        .prop_map(|(at, lasts, fault)| FaultStep { at, lasts, fault });
    prop_oneof![1 => Just(Vec::new()), 3 => vec(step, 0..=4)].boxed()
}

fn span(range: std::ops::Range<Millis>) -> impl Strategy<Value = Millis> + Clone {
    range
}
