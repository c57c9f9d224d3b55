//! The functions that the fuzz targets call; `fuzz/README.md` says how to run them.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{BootInstant, WallTime};
use leasehold::env::SystemEntropy;
use leasehold::look::{ClientInfo, Owner};
use leasehold::member::{MemberId, MemberSet, RunId};
use leasehold::store::{LockRequest, Permits};
use leasehold::{Fence, Key, Mode};
use leasehold_quorum::{
    Config, Engine, Lease, MemberIndex, Notification, Now, Operation, OperationId, Position,
    RecordAction, Request, Successor,
};

use crate::codec::{Codec, LockValue, SAMPLE_COMMANDS, Sampler, read_notification};
use crate::resp::{ParseError, Parser, Value};
use crate::url::RedisUrl;

/// The bytes of a connection.
///
/// # Panics
///
/// If the values differ depending on whether the bytes arrive in pieces or at once.
pub fn reply(bytes: &[u8]) {
    parse(bytes, bytes.len());
    let bytes = &bytes[..bytes.len().min(1_000)];
    let (at_once, failed) = parse(bytes, bytes.len());
    let (in_pieces, failed_in_pieces) = parse(bytes, 1);
    // Compared as text, since a number may be NaN.
    assert_eq!(format!("{at_once:?}"), format!("{in_pieces:?}"));
    // When a value arrives in pieces, the parser reads its items only after all of it has arrived. So it
    // may find another error first, or none yet.
    assert!(failed_in_pieces.is_none() || failed.is_some());
}

/// Returns the values of the bytes, which arrive in pieces of this size, and why reading stopped.
fn parse(bytes: &[u8], piece: usize) -> (Vec<Value>, Option<ParseError>) {
    let (mut parser, mut values) = (Parser::new(), Vec::new());
    for mut piece in bytes.chunks(piece.max(1)) {
        while !piece.is_empty() {
            let room = parser.room();
            let (now, later) = piece.split_at(room.len().min(piece.len()));
            room[..now.len()].copy_from_slice(now);
            parser.filled(now.len());
            piece = later;
            loop {
                match parser.next_value() {
                    Ok(Some(value)) => values.push(value),
                    Ok(None) => break,
                    Err(error) => return (values, Some(error)),
                }
            }
        }
    }
    (values, None)
}

/// Replies, read as the answers to each request, and as notifications.
///
/// # Panics
///
/// If a notification makes a client free a lease.
pub fn answer(bytes: &[u8]) {
    let (values, _) = parse(bytes, bytes.len());
    let requests = requests();
    understand(&values, &requests);
}

fn understand(values: &[Value], requests: &[Request]) {
    let codec = Codec {
        prefix: "app:".into(),
        user: "ann".into(),
        client: client().id,
    };
    for request in requests {
        let count = Codec::answers(request).max(1);
        for answers in values.windows(count) {
            let _ = codec.decode(request, answers);
        }
    }
    let mut sampler = Sampler::new(RunId::new("run"), "ann");
    for answers in values.windows(SAMPLE_COMMANDS) {
        if let [time, epoch] = answers {
            let _ = sampler.read(time, epoch);
        }
    }
    for prefix in ["app:", ""] {
        if let Some(notification) = read_notification(prefix, values) {
            act_on(notification);
        }
    }
    crate::admin::read_all(values, codec.client);
    for value in values {
        if let Some(bytes) = value.as_bytes() {
            let _ = LockValue::read(bytes);
        }
        if let Value::Array(items) | Value::Push(items) = value {
            understand(items, requests);
        }
    }
}

/// Notifies a client that waits for a lock.
fn act_on(notification: Notification) {
    let now = Now {
        instant: BootInstant::from_nanos(7),
        wall: BEGAN,
    };
    let limits = (Duration::from_secs(60), Duration::from_millis(250));
    let mut engine = Engine::new(Config {
        set: MemberSet::new([MemberId::new("a")], limits.0, limits.1),
        enforced: false,
        read_only: true,
        entropy: Arc::new(SystemEntropy),
    });
    engine.handle_connect(now, MemberIndex::FIRST);
    let acquire = Operation::Acquire(lock_request(Mode::Exclusive));
    engine.start(now, OperationId(1), acquire);
    engine.handle_notification(now, MemberIndex::FIRST, notification);
    while let Some((_, _, request)) = engine.poll_transmit() {
        let frees = matches!(request, Request::Free { .. } | Request::Release { .. });
        assert!(!frees, "a message frees a lease: {request:?}");
    }
}

/// Returns requests of each kind, one for each form of its answer.
fn requests() -> Vec<Request> {
    let permits = Permits::new(3).expect("a number of permits");
    let modes = [Mode::Exclusive, Mode::Shared, Mode::Permit(permits)];
    let [exclusive, shared, permit] = modes.map(lock_request);
    let lease = |lock_request: &Arc<LockRequest>| Lease {
        lock_request: Arc::clone(lock_request),
        fence: Fence::MAX,
        slot: None,
    };
    let attempt = |expire| Request::TryAcquire {
        lock_request: Arc::clone(&exclusive),
        proposal: 7,
        expire,
    };
    let acquire = |lock_request: &Arc<LockRequest>| Request::Acquire {
        lock_request: Arc::clone(lock_request),
        proposal: 7,
        position: Position::Ticket(5),
        preferred: None,
    };
    let release = |successor| Request::Release {
        lock_request: Arc::clone(&exclusive),
        requeue: None,
        successor,
    };
    let successor = Successor {
        lock_request: Arc::clone(&permit),
        proposal: 7,
        ticket: 5,
        preferred: None,
    };
    let record = |action| Request::Record(exclusive.key.clone(), action);
    vec![
        attempt(true),
        attempt(false),
        Request::DrawFence {
            lock_request: Arc::clone(&exclusive),
        },
        acquire(&exclusive),
        acquire(&permit),
        release(None),
        release(Some(successor)),
        Request::Renew(vec![lease(&exclusive), lease(&shared)]),
        Request::Heartbeat(vec![Arc::clone(&exclusive), Arc::clone(&permit)]),
        Request::ConfirmFence {
            lock_request: Arc::clone(&exclusive),
            fence: Fence::MAX,
        },
        Request::Repair(vec![lease(&exclusive)]),
        Request::Dequeue {
            lock_request: Arc::clone(&permit),
        },
        record(RecordAction::Open(Fence::MAX)),
        record(RecordAction::Read),
        Request::Status,
    ]
}

const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";
const BEGAN: WallTime = WallTime::from_micros(1_763_637_400_000_000);

fn lock_request(mode: Mode) -> Arc<LockRequest> {
    let owner: Owner = OWNER.parse().expect("an owner");
    let key = Key::new("deploy").expect("a key");
    let lock_request = LockRequest::new(
        key,
        owner,
        Duration::from_secs(9),
        BEGAN,
        Arc::new(client()),
    );
    Arc::new(lock_request.with_mode(mode))
}

fn client() -> ClientInfo {
    let id = OWNER[..16].parse().expect("the id of a client");
    ClientInfo::new(id, "host".into(), 1, "test".into(), BEGAN)
}

/// Store URLs.
pub fn url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(url) = RedisUrl::parse(&text) {
        let _ = (
            url.to_string(),
            url.room(),
            url.address.same_server(&url.address),
        );
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::feed_seeds;

    #[test]
    fn replies_of_any_bytes_are_read_safely() {
        feed_seeds("reply", 2_000, super::reply);
    }

    #[test]
    fn answers_of_any_bytes_are_read_safely() {
        feed_seeds("answer", 2_000, super::answer);
    }

    #[test]
    fn urls_of_any_bytes_are_read_safely() {
        feed_seeds("url", 2_000, super::url);
    }
}
