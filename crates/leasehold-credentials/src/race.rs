//! Opens a connection to the first of several servers or addresses that answers.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use leasehold::store::background::blocking;
use tokio::net::TcpStream;

/// The time after which the next candidate is tried although the ones before it have not failed: the "Connection Attempt
/// Delay" of [RFC 8305](https://www.rfc-editor.org/rfc/rfc8305#section-5).
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Opens the candidates in their order, and returns what the first one that succeeds returns. The next candidate is tried
/// 250 ms after the last one, or as soon as one fails. A candidate that answers late can still win.
///
/// The limit of all of it is the caller's. It must run on a tokio runtime that has timers.
///
/// # Errors
///
/// The failures of all candidates, in the order in which they failed: none if there was no candidate.
///
/// # Cancel safety
///
/// Dropping the future drops all attempts that are under way, as does the first success.
pub async fn race<C, T, E, F>(
    candidates: impl IntoIterator<Item = C>,
    open: impl Fn(C) -> F,
) -> Result<T, Vec<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let mut candidates = candidates.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failures = Vec::new();
    loop {
        let is_last = match candidates.next() {
            Some(candidate) => {
                attempts.push(open(candidate));
                false
            }
            None => true,
        };
        let mut next_is_due = pin!(attempt_delay());
        loop {
            tokio::select! {
                biased;
                ended = attempts.next() => match ended {
                    Some(Ok(opened)) => return Ok(opened),
                    Some(Err(failure)) => failures.push(failure),
                    None => return Err(failures),
                },
                () = &mut next_is_due, if !is_last => break,
            }
            if !is_last {
                break;
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "after a suspend, the next attempt only starts late"
)]
fn attempt_delay() -> tokio::time::Sleep {
    tokio::time::sleep(ATTEMPT_DELAY)
}

/// Looks up `host`, and connects to the first of its addresses that accepts ([`race`]).
///
/// # Errors
///
/// Those of the lookup; otherwise that of the address that failed last.
///
/// # Cancel safety
///
/// Dropping the future closes what it opened. A lookup that is under way goes on, and its result is dropped.
pub async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return TcpStream::connect((address, port)).await;
    }
    // The lookup of tokio would panic if the system has no room for a thread.
    let name = host.to_owned();
    let found = blocking(move || (name.as_str(), port).to_socket_addrs()).await;
    let addresses = found.map_err(io::Error::other)??;
    race(addresses, TcpStream::connect)
        .await
        .map_err(|mut failures| {
            let no_address = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            failures.pop().unwrap_or_else(no_address)
        })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Mutex;

    use super::*;

    /// Succeeds, fails, or never answers, after a number of milliseconds.
    #[derive(Clone, Copy)]
    enum Candidate {
        Opens(&'static str, u64),
        Fails(&'static str, u64),
        Silent,
    }
    use Candidate::{Fails, Opens, Silent};

    #[expect(clippy::disallowed_methods, reason = "time is paused")]
    async fn open(candidate: Candidate) -> Result<&'static str, &'static str> {
        match candidate {
            Opens(name, after) => {
                tokio::time::sleep(Duration::from_millis(after)).await;
                Ok(name)
            }
            Fails(name, after) => {
                tokio::time::sleep(Duration::from_millis(after)).await;
                Err(name)
            }
            Silent => pending().await,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "time is paused")]
    async fn timed(candidates: &[Candidate]) -> (Result<&'static str, Vec<&'static str>>, u128) {
        let begun = tokio::time::Instant::now();
        let result = race(candidates.iter().copied(), open).await;
        (result, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn silent_candidate_costs_one_attempt_delay() {
        let both = timed(&[Silent, Opens("second", 10)]).await;
        assert_eq!(both, (Ok("second"), 260));
        let three = timed(&[Silent, Silent, Opens("third", 0)]).await;
        assert_eq!(three, (Ok("third"), 500));
    }

    #[tokio::test(start_paused = true)]
    async fn failure_starts_the_next_at_once() {
        let raced = timed(&[Fails("refused", 5), Opens("second", 10)]).await;
        assert_eq!(raced, (Ok("second"), 15));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_first_candidate_can_still_win() {
        let raced = timed(&[Opens("first", 300), Opens("second", 200)]).await;
        assert_eq!(raced, (Ok("first"), 300));
        let alone = timed(&[Opens("first", 3_000), Fails("refused", 0)]).await;
        assert_eq!(alone, (Ok("first"), 3_000));
    }

    #[tokio::test(start_paused = true)]
    async fn all_failures_are_returned() {
        let raced = timed(&[Fails("slow", 400), Fails("fast", 0)]).await;
        assert_eq!(raced, (Err(vec!["fast", "slow"]), 400));
        assert_eq!(timed(&[]).await, (Err(Vec::new()), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn later_candidates_are_not_opened_early() {
        let opened = Mutex::new(Vec::new());
        let raced = race([1, 2, 3], async |candidate| {
            opened.lock().unwrap().push(candidate);
            open(Opens("quick", 200)).await
        });
        assert_eq!(raced.await, Ok("quick"));
        assert_eq!(*opened.lock().unwrap(), [1]);
    }

    #[tokio::test]
    async fn name_without_listener_keeps_its_reason() {
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        connect("localhost", port).await.unwrap();
        drop(listener);
        let refused = connect("localhost", port).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
