use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use leasehold::env::{Entropy, SystemEntropy};

/// Below the range from which Linux takes the local ports of outgoing connections (32768 and up). Otherwise
/// a client that reconnects to a stopped server could be connected to itself, or take the port that the
/// restarted server needs.
const FIRST: u16 = 15_000;
const COUNT: u16 = 16_000;

/// The ports that this process has given out. They stay taken, so that a stopped server can come back.
static TAKEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// Returns a loopback port on which nothing listens now. Another process may take it first; then the caller
/// tries another one.
pub(super) fn free_port() -> u16 {
    loop {
        let offset = SystemEntropy.next_u64() % u64::from(COUNT);
        let port = FIRST + u16::try_from(offset).unwrap_or_default();
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = taken.get_or_insert_default().insert(port);
        if fresh && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
