//! What the fuzz target calls; `fuzz/README.md` says how to run it.

use std::sync::Arc;
use std::time::Duration;

use leasehold::Key;
use leasehold::clock::WallTime;
use leasehold::look::{ClientInfo, Owner};
use leasehold::store::LockRequest;

use crate::client_text;
use crate::password_file;
use crate::session::requests;
use crate::session::waits::Waits;
use crate::url::Settings;

const OWNER: &str = "0123456789abcdef.0123456789abcdef0123456789abcdef";

/// URLs, lines of a password file, answers of functions, notifications, and texts in the tables.
///
/// # Panics
///
/// If a client is not what was written.
pub fn postgres(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    url(text);
    let _ = password_file::matched(text, ["h", "5432", "app", "ann"]);
    let _ = requests::answer(text, &lock_request());
    let _ = requests::released(text);
    let _ = requests::asks(text);
    let (waits, request) = (Waits::new(), lock_request());
    let wait = waits.enter(request.owner, &request.key);
    waits.wake(text);
    drop(wait);
    let _ = client_text::read_break(text);
    if let Some(client) = client_text::read_client(text) {
        let again = client_text::client(&client).expect("a client has a text");
        assert_eq!(client_text::read_client(&again), Some(client));
    }
}

fn url(text: &str) {
    if let Ok(settings) = Settings::parse(text) {
        let _ = (settings.to_string(), settings.is_local());
    }
}

fn lock_request() -> LockRequest {
    let owner: Owner = OWNER.parse().expect("an owner");
    let since = WallTime::from_micros(1_763_637_400_000_000);
    let client = ClientInfo::new(owner.client(), "host".into(), 1, "test".into(), since);
    let key = Key::new("deploy").expect("a key");
    LockRequest::new(key, owner, Duration::from_secs(9), since, Arc::new(client))
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_of_any_bytes_are_read_safely() {
        leasehold_testkit::feed_seeds("postgres", 2_000, super::postgres);
    }
}
