use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Mutex;

use leasehold::env::{Entropy, SystemEntropy};
use leasehold::store::locked;

/// Below the range from which Linux takes the local ports of outgoing connections (32768 and up). Otherwise
/// a client that reconnects to a stopped server could be connected to itself, or take the port that the
/// restarted server needs.
const FIRST: u16 = 15_000;
const COUNT: u16 = 16_000;

/// How often to start a server at most.
const TRIES: usize = 20;

/// The ports that this process has given out, each as a socket for UDP of the same number. Another process of the tests
/// cannot bind it, so a stopped server can come back.
static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// Returns a loopback port on which nothing listens now, and which no process of the tests is given before this one ends.
pub(super) fn free_port() -> u16 {
    loop {
        let offset = SystemEntropy.next_u64() % u64::from(COUNT);
        let port = FIRST + u16::try_from(offset).unwrap_or_default();
        let place = (Ipv4Addr::LOCALHOST, port);
        if let Ok(taken) = UdpSocket::bind(place)
            && TcpListener::bind(place).is_ok()
        {
            locked(&TAKEN).push(taken);
            return port;
        }
    }
}

/// Starts a server, and retries if one of its ports is taken.
///
/// # Errors
///
/// That of the last start.
pub(super) fn retry_taken_ports<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            started => return started,
        }
    }
    start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_port_is_reserved() {
        let place = (Ipv4Addr::LOCALHOST, free_port());
        let taken = UdpSocket::bind(place).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        assert!(TcpListener::bind(place).is_ok());
    }

    #[test]
    fn only_a_taken_port_is_tried_again() {
        let starts = |kind| {
            let mut count = 0;
            let started: io::Result<()> = retry_taken_ports(|| {
                count += 1;
                Err(io::Error::from(kind))
            });
            assert_eq!(started.unwrap_err().kind(), kind);
            count
        };
        assert_eq!(starts(io::ErrorKind::AddrInUse), TRIES);
        assert_eq!(starts(io::ErrorKind::NotFound), 1);
    }
}
