//! The random choice of programs.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::strategy::Union;

use super::operation::{
    Acquire, ClientProgram, Fault, FaultStep, LEADER, LockIndex, Manner, Millis, Operation,
    PERMITS, PathFault, Program, REQUEST, Ttl,
};

/// What a store's clients and servers can suffer, and what it offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    pub(crate) shared: bool,
    pub(crate) permits: bool,
    pub(crate) handles: bool,
    pub(crate) breaks: bool,
    pub(crate) records: bool,
    /// Whether clients are processes that can fork, and can be stopped and killed.
    pub(crate) processes: bool,
    /// How many servers.
    pub(crate) servers: usize,
    /// How many faults of servers.
    pub(crate) server_faults: usize,
}

/// Choices with their weights.
type Choices<T> = Vec<(u32, BoxedStrategy<T>)>;

/// Returns all programs for a store. Some use only records, since these are rare among all operations.
pub(crate) fn programs(capabilities: Capabilities) -> BoxedStrategy<Program> {
    let on_locks = prop::option::of(lock(capabilities)).prop_flat_map(move |only| {
        // Most operations need a guard.
        let first = acquire(capabilities, only).prop_map(Operation::Acquire);
        let first = prop::option::weighted(0.8, first).boxed();
        program(first, on_lock(capabilities, only), capabilities)
    });
    if !capabilities.records {
        return on_locks.boxed();
    }
    let mut all = on_records(capabilities);
    all.push((4, span(0..500).prop_map(Operation::Work).boxed()));
    all.push((4, Just(Operation::Meet).boxed()));
    let on_records = program(Just(None).boxed(), all, capabilities);
    prop_oneof![5 => on_locks, 1 => on_records].boxed()
}

/// Each program leaves out some kinds of operations and faults, so that those that are left meet more often. This is swarm testing:
/// <https://users.cs.utah.edu/~regehr/papers/swarm12.pdf>.
fn program(
    first: BoxedStrategy<Option<Operation>>,
    operations: Choices<Operation>,
    capabilities: Capabilities,
) -> BoxedStrategy<Program> {
    (some_of(operations, 2), some_of(faults(capabilities), 0))
        .prop_flat_map(move |(operations, faults)| {
            let task = (first.clone(), vec(Union::new_weighted(operations), 1..=7))
                .prop_map(|(first, rest)| first.into_iter().chain(rest).collect());
            let client = vec(task, 1..=2).prop_map(|tasks| ClientProgram { tasks });
            (vec(client, 2..=4), fault_steps(faults))
        })
        .prop_map(|(clients, faults)| Program { clients, faults })
        .boxed()
}

/// Returns all choices, or some of them.
fn some_of<T: std::fmt::Debug + 'static>(
    choices: Choices<T>,
    min: usize,
) -> impl Strategy<Value = Choices<T>> {
    let (min, max) = (min.min(choices.len()), choices.len());
    prop_oneof![Just(choices.clone()), subsequence(choices, min..=max)]
}

/// Operations on all locks, or on only one.
fn on_lock(capabilities: Capabilities, only: Option<LockIndex>) -> Choices<Operation> {
    let acquire = acquire(capabilities, only).prop_map(Operation::Acquire);
    let mut all: Choices<Operation> = vec![
        (30, acquire.boxed()),
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
    if capabilities.processes {
        all.push((2, Just(Operation::Fork).boxed()));
    }
    if only.is_none() {
        let both = (manner(), cancel());
        let both = both.prop_map(|(manner, cancel_after)| Operation::AcquireAll {
            manner,
            cancel_after,
        });
        all.push((3, both.boxed()));
    }
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
        all.push((
            6,
            break_one_of(only.map_or(0..=PERMITS, |only| only..=only)),
        ));
    }
    if capabilities.records && only.is_none() {
        all.extend(on_records(capabilities));
    }
    all
}

/// Requests that run once, and elections.
fn on_records(capabilities: Capabilities) -> Choices<Operation> {
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

fn lock(capabilities: Capabilities) -> BoxedStrategy<LockIndex> {
    match capabilities.permits {
        true => prop_oneof![4 => Just(0), 2 => Just(1), 2 => Just(PERMITS)].boxed(),
        false => prop_oneof![2 => Just(0), 1 => Just(1)].boxed(),
    }
}

fn acquire(capabilities: Capabilities, only: Option<LockIndex>) -> impl Strategy<Value = Acquire> {
    let lock = only.map_or_else(|| lock(capabilities), |only| Just(only).boxed());
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

fn faults(capabilities: Capabilities) -> Choices<Fault> {
    let mut all: Choices<Fault> = Vec::new();
    if capabilities.servers > 0 {
        let server = match capabilities.servers {
            1 => Just(None).boxed(),
            count => prop::option::of(0..count as u8).boxed(),
        };
        let path = |(weight, kind): (u32, BoxedStrategy<PathFault>)| {
            let path = (0..4_u8, server.clone(), kind);
            let path = path.prop_map(|(client, server, kind)| Fault::Path {
                client,
                server,
                kind,
            });
            (weight, path.boxed())
        };
        let kinds = [
            (3, Just(PathFault::Cut).boxed()),
            (4, Just(PathFault::LateRequests).boxed()),
            (2, span(50..900).prop_map(PathFault::SlowAnswers).boxed()),
            (1, span(50..900).prop_map(PathFault::SlowRequests).boxed()),
            (2, Just(PathFault::Mute).boxed()),
            (2, Just(PathFault::Frozen).boxed()),
            (2, Just(PathFault::HalfOpen).boxed()),
            (1, Just(PathFault::Refusing).boxed()),
        ];
        all.extend(kinds.map(path));
    }
    if capabilities.processes {
        all.push((6, (0..4_u8).prop_map(Fault::StopClient).boxed()));
        all.push((2, (0..4_u8).prop_map(Fault::KillClient).boxed()));
    }
    if capabilities.server_faults > 0 {
        let fault = (0..capabilities.server_faults as u8).prop_map(Fault::Server);
        all.push((8, fault.boxed()));
    }
    all
}

fn fault_steps(faults: Choices<Fault>) -> BoxedStrategy<Vec<FaultStep>> {
    if faults.is_empty() {
        return Just(Vec::new()).boxed();
    }
    let step = (span(0..3_000), 100..3_500_u16, Union::new_weighted(faults))
        .prop_map(|(at, lasts, fault)| FaultStep { at, lasts, fault });
    prop_oneof![1 => Just(Vec::new()), 3 => vec(step, 0..=4)].boxed()
}

fn span(range: std::ops::Range<Millis>) -> impl Strategy<Value = Millis> + Clone {
    range
}
