use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::Handle;
use super::task::Task;
use crate::error::Fallible;

/// What the server alone allows: a list that holds one token while the lock is free. BLPOP takes it in
/// the order of the requests, and RPUSH returns it, on bare sockets. It is no lock: a client that dies
/// keeps the token.
pub(super) struct Waiter {
    /// BLPOP keeps a connection waiting, so each waiter has its own.
    connection: Mutex<TcpStream>,
    words: Arc<Words>,
}

/// The requests, which are always the same.
struct Words {
    take: Vec<u8>,
    ask: Vec<u8>,
    give: Vec<u8>,
}

pub(super) async fn handles(task: &Task) -> Fallible<Vec<Waiter>> {
    let [port] = task.ports.as_slice() else {
        return Err("a list of one token is on one server".into());
    };
    let key = task.keys().next().ok_or("no waiter was configured")?;
    let key = key.as_str();
    let words = Arc::new(Words {
        take: request(&["BLPOP", key, "0"]),
        ask: request(&["LPOP", key]),
        give: request(&["RPUSH", key, "t"]),
    });
    let mut waiters = Vec::new();
    for _ in 0..task.waiters {
        waiters.push(Waiter {
            connection: Mutex::new(connect(*port).await?),
            words: Arc::clone(&words),
        });
    }
    if let Some(first) = waiters.first() {
        first.release(()).await?;
    }
    Ok(waiters)
}

pub(super) async fn connect(port: u16) -> Fallible<TcpStream> {
    let connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.set_nodelay(true)?;
    Ok(connection)
}

impl Waiter {
    /// The answers to these requests fit into one packet, and nothing follows before the next request.
    async fn call(&self, request: &[u8]) -> Fallible<Vec<u8>> {
        let mut connection = self.connection.lock().await;
        connection.write_all(request).await?;
        let mut answer = Vec::with_capacity(64);
        while !answer.ends_with(b"\r\n") || !is_whole(&answer) {
            if connection.read_buf(&mut answer).await? == 0 {
                return Err("the server closed the connection".into());
            }
        }
        Ok(answer)
    }
}

impl Handle for Waiter {
    type Held = ();

    async fn acquire(&self) -> Fallible {
        let answer = self.call(&self.words.take).await?;
        expect(&answer, b'*')
    }

    async fn try_acquire(&self) -> Fallible<Option<()>> {
        let answer = self.call(&self.words.ask).await?;
        expect(&answer, b'$').map(|()| (answer != b"$-1\r\n").then_some(()))
    }

    async fn release(&self, (): ()) -> Fallible {
        let answer = self.call(&self.words.give).await?;
        expect(&answer, b':')
    }
}

fn expect(answer: &[u8], sort: u8) -> Fallible {
    if answer.first() == Some(&sort) {
        Ok(())
    } else {
        let answer = answer.escape_ascii().to_string();
        Err(format!("the server answered {answer:?}").into())
    }
}

/// Whether as many lines have come as this kind of answer has: a list of two strings, one string, or
/// a line.
fn is_whole(answer: &[u8]) -> bool {
    let lines = answer.iter().filter(|byte| **byte == b'\n').count();
    match answer.first() {
        Some(b'*') => lines == 5,
        Some(b'$') => lines == 2 || answer == b"$-1\r\n",
        _ => lines == 1,
    }
}

pub(super) fn request(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    request.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_pieces_is_not_whole() {
        let popped = b"*2\r\n$5\r\nbench\r\n$1\r\nt\r\n";
        assert!(is_whole(popped));
        assert!(!is_whole(b"*2\r\n$5\r\nbench\r\n"));
        assert!(is_whole(b"$-1\r\n") && is_whole(b"$1\r\nt\r\n") && is_whole(b":1\r\n"));
        assert!(!is_whole(b"$1\r\n") && !is_whole(b""));
    }

    #[test]
    fn requests_are_of_the_protocol() {
        assert_eq!(request(&["LPOP", "k"]), b"*2\r\n$4\r\nLPOP\r\n$1\r\nk\r\n");
    }
}
