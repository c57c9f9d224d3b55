//! What the fuzz target calls; `fuzz/README.md` says how to run it.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::look::{ClientInfo, Owner};
use leasehold::store::{LockRequest, Permits};
use leasehold::{Fence, Key, Mode};
use prost::Message as _;

use crate::locking::{Attempt, Entry, Names, Snapshot, Standing};
use crate::proto::{KeyValue, RangeResponse, TxnResponse, WatchResponse};
use crate::settings::Settings;
use crate::store::read_values;

const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

/// URLs, keys, values, and the messages of a server.
///
/// # Panics
///
/// If an entry is not what was written.
pub fn etcd(bytes: &[u8]) {
    url(&String::from_utf8_lossy(bytes));
    key(bytes);
    value(bytes);
    read_values(bytes);
    if let Ok(message) = WatchResponse::decode(bytes) {
        for event in &message.events {
            let _ = event.deleted();
        }
    }
    if let Ok(page) = RangeResponse::decode(bytes) {
        decided(&page);
    }
    if let Ok(answer) = TxnResponse::decode(bytes) {
        answered(&answer);
    }
}

fn url(text: &str) {
    if let Ok(settings) = Settings::parse(text) {
        let _ = settings.to_string();
    }
}

fn key(bytes: &[u8]) {
    let names = Names::new("app/");
    let Some((lock, position, lease)) = names.parse(bytes) else {
        return;
    };
    if let Ok(lock) = Key::new(lock) {
        let again = names.entry(&lock, position, lease);
        let parsed = names.parse(&again);
        assert_eq!(parsed, Some((lock.as_str(), position, lease)));
    }
}

fn value(bytes: &[u8]) {
    let names = Names::new("");
    let kv = KeyValue {
        key: b"job/1f".to_vec(),
        value: bytes.to_vec(),
        ..KeyValue::default()
    };
    let entry = Entry::read(&names, "job", kv.clone()).expect("an entry");
    if let Some(stored) = &entry.stored {
        let value = stored.to_bytes();
        let again = Entry::read(&names, "job", KeyValue { value, ..kv });
        assert_eq!(again, Some(entry));
    }
}

/// Decides by what a server says of a lock.
fn decided(found: &RangeResponse) {
    for_each_attempt(|attempt| {
        let (names, request) = (attempt.names, attempt.request);
        let snapshot = Snapshot::read(names, &request.key, found.clone());
        let _ = snapshot.decide(attempt.standing, request.mode);
        let _ = snapshot.has(&attempt.key(), 5);
    });
}

fn answered(answer: &TxnResponse) {
    for_each_attempt(|attempt| {
        let _ = attempt.read(answer.clone(), Fence::MAX);
    });
}

fn for_each_attempt(act: impl Fn(&Attempt<'_>)) {
    let permits = Permits::new(3).expect("a number of permits");
    let names = Names::new("");
    for mode in [Mode::Exclusive, Mode::Shared, Mode::Permit(permits)] {
        let request = lock_request().with_mode(mode).waiting(true);
        let with_entry = [Standing::Queued(5), Standing::Ahead(5)];
        let standings = [Standing::Newcomer, Standing::Barging];
        for standing in standings.into_iter().chain(with_entry) {
            act(&Attempt {
                names: &names,
                request: &request,
                lease: 0x1f,
                number: 0x1f,
                fence_lease: 7,
                standing,
                announces: request.is_queued(),
            });
        }
    }
}

fn lock_request() -> LockRequest {
    let owner: Owner = OWNER.parse().expect("an owner");
    let since = WallTime::from_micros(1_763_637_400_000_000);
    let client = ClientInfo::new(owner.client(), "host".into(), 1, "test".into(), since);
    let key = Key::new("job").expect("a key");
    LockRequest::new(key, owner, Duration::from_secs(9), since, Arc::new(client))
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_and_messages_of_any_bytes_are_read_safely() {
        leasehold_testkit::feed_seeds("etcd", 2_000, super::etcd);
    }
}
