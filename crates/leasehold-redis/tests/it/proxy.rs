use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use leasehold::store::background;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a proxy does with the bytes that come from the server.
pub(crate) type Rewrite = Arc<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// Listens on a free port and passes everything on to `port`. It runs as long as the test's runtime.
pub(crate) async fn proxy(port: u16, rewrite: Rewrite) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    background::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.unwrap().into_split();
            background::spawn(async move {
                let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
            });
            let rewrite = Arc::clone(&rewrite);
            background::spawn(async move {
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(count) = from_server.read(&mut buffer).await
                    && count > 0
                {
                    let mut bytes = buffer[..count].to_vec();
                    rewrite(&mut bytes);
                    if to_client.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    own
}

/// Listens on a free port and passes everything on to `port`. When the server ends a connection, the proxy
/// opens another one to it, and the client notices nothing. Also returns how many connections it has
/// opened. It runs as long as the test's runtime.
pub(crate) async fn reconnecting_proxy(port: u16) -> (u16, watch::Receiver<usize>) {
    let (opened, count) = watch::channel(0);
    let opened = Arc::new(opened);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    background::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let opened = Arc::clone(&opened);
            background::spawn(async move {
                loop {
                    let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
                    let Ok(mut server) = connected else {
                        tokio::task::yield_now().await;
                        continue;
                    };
                    opened.send_modify(|count| *count += 1);
                    let (mut from_client, mut to_client) = client.split();
                    let (mut from_server, mut to_server) = server.split();
                    tokio::select! {
                        ended = tokio::io::copy(&mut from_client, &mut to_server) => {
                            if ended.is_ok() {
                                return;
                            }
                        }
                        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
                    }
                }
            });
        }
    });
    (own, count)
}

/// The traffic through a proxy, in turns. A turn is what a client sent before the server answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<ReceivedTurns>>);

#[derive(Debug, Default)]
struct ReceivedTurns {
    turns: Vec<String>,
    answered: bool,
}

impl Turns {
    /// Returns a proxy to `port` that listens, and its own port.
    pub(crate) async fn through_proxy_to(port: u16) -> (Self, u16) {
        let turns = Self::default();
        let own = proxy_hearing(port, turns.clone()).await;
        (turns, own)
    }

    fn asked(&self, bytes: &[u8]) {
        let mut heard = self.0.lock().unwrap();
        if std::mem::take(&mut heard.answered) || heard.turns.is_empty() {
            heard.turns.push(String::new());
        }
        let text = String::from_utf8_lossy(bytes);
        heard.turns.last_mut().unwrap().push_str(&text);
    }

    fn answered(&self) {
        self.0.lock().unwrap().answered = true;
    }

    /// Returns whether the client still waits for an answer.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.0.lock().unwrap().answered
    }

    /// Returns whether the client sent this word since the turns were last taken.
    pub(crate) fn said(&self, word: &str) -> bool {
        self.0
            .lock()
            .unwrap()
            .turns
            .iter()
            .any(|turn| turn.contains(word))
    }

    /// Returns all turns since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().turns)
    }
}

async fn proxy_hearing(port: u16, turns: Turns) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    background::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
            let (mut server, turns) = (server.unwrap(), turns.clone());
            background::spawn(async move {
                let (mut said, mut answer) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
                loop {
                    tokio::select! {
                        Ok(count @ 1..) = client.read(&mut said) => {
                            turns.asked(&said[..count]);
                            server.write_all(&said[..count]).await.unwrap();
                        }
                        Ok(count @ 1..) = server.read(&mut answer) => {
                            turns.answered();
                            client.write_all(&answer[..count]).await.unwrap();
                        }
                        else => break,
                    }
                }
            });
        }
    });
    own
}

/// Listens on a free port and answers everything with `answer`.
pub(crate) async fn parrot(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    background::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            background::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(count) = client.read(&mut buffer).await
                    && count > 0
                    && client.write_all(answer).await.is_ok()
                {}
            });
        }
    });
    own
}

/// Listens on a free port and passes everything on to `port`. Once `floods` is set, it keeps the end of the next answer
/// back, and sends `push` without end. Also returns how many bytes of that the client took before it closed the connection.
pub(crate) async fn flooding(
    port: u16,
    floods: Arc<AtomicBool>,
    push: String,
) -> (u16, impl Future<Output = Option<usize>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let (sender, ended) = tokio::sync::oneshot::channel();
    background::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.unwrap().into_split();
        background::spawn(async move {
            let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        });
        let mut buffer = vec![0; 64 * 1024];
        while !floods.load(Ordering::Relaxed) {
            let count = from_server.read(&mut buffer).await.unwrap();
            if floods.load(Ordering::Relaxed) {
                // The sample of the server's clock ends each batch.
                let answer = &buffer[..count];
                let sample = answer.windows(4).position(|it| it == b"*2\r\n");
                buffer.truncate(sample.expect("a sample"));
                to_client.write_all(&buffer).await.unwrap();
            } else {
                to_client.write_all(&buffer[..count]).await.unwrap();
            }
        }
        let (pushes, mut sent) = (push.repeat(100), 0);
        while to_client.write_all(pushes.as_bytes()).await.is_ok() {
            sent += pushes.len();
        }
        let _ = sender.send(sent);
    });
    (own, async { ended.await.ok() })
}

/// Listens on a free port and begins a reply that never ends. Also returns a future that resolves once the
/// client has closed the connection.
pub(crate) async fn endless() -> (u16, impl Future<Output = Option<()>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let (sender, ended) = tokio::sync::oneshot::channel();
    background::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let items = "+item\r\n".repeat(1_000);
        let mut sent = client.write_all(b"*2796202\r\n").await;
        while sent.is_ok() {
            sent = client.write_all(items.as_bytes()).await;
        }
        let _ = sender.send(());
    });
    (own, async { ended.await.ok() })
}

/// How a connection ended: in order, with all data delivered, or reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Aborted,
}

/// A network that can hold back the data of its first connection, and deliver it long after the sender
/// closed that connection. The server does not learn of the close.
pub(crate) struct SlowNetwork {
    pub(crate) port: u16,
    holding: watch::Sender<bool>,
    held: watch::Receiver<usize>,
    delivered: watch::Receiver<Option<End>>,
}

impl SlowNetwork {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (holding, hold) = watch::channel(false);
        let (holds, held) = watch::channel(0);
        let (delivers, delivered) = watch::channel(None);
        background::spawn(async move {
            let (first, _) = listener.accept().await.unwrap();
            background::spawn(hold_back(first, port, hold, holds, delivers));
            while let Ok((mut client, _)) = listener.accept().await {
                let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                    .await
                    .unwrap();
                background::spawn(async move {
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self {
            port: own,
            holding,
            held,
            delivered,
        }
    }

    /// From now on, no data of the first connection arrives.
    pub(crate) fn hold(&self) {
        self.holding.send_replace(true);
    }

    /// Returns how many bytes are in transit.
    pub(crate) fn held(&self) -> usize {
        *self.held.borrow()
    }

    /// Delivers all of it, and returns when the server has taken it or thrown it away. The result says how
    /// the sender's side of the connection had ended.
    pub(crate) async fn deliver(&mut self) -> End {
        self.holding.send_replace(false);
        let delivered = self.delivered.wait_for(Option::is_some).await;
        delivered.unwrap().unwrap()
    }
}

async fn hold_back(
    client: TcpStream,
    port: u16,
    mut hold: watch::Receiver<bool>,
    holds: watch::Sender<usize>,
    delivers: watch::Sender<Option<End>>,
) {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.unwrap().into_split();
    let answers = background::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
        // The client is gone, but the server still sends to what it takes for the client.
        while matches!(from_server.read(&mut [0; 4096]).await, Ok(1..)) {}
    });
    let mut on_the_way = Vec::new();
    let mut buffer = vec![0; 4096];
    let end = loop {
        let count = match from_client.read(&mut buffer).await {
            Ok(0) => break End::Closed,
            Ok(count) => count,
            Err(_) => break End::Aborted,
        };
        on_the_way.extend_from_slice(&buffer[..count]);
        if !*hold.borrow() {
            to_server.write_all(&on_the_way).await.unwrap();
            on_the_way.clear();
        }
        holds.send_replace(on_the_way.len());
    };
    hold.wait_for(|holding| !holding).await.unwrap();
    // The server may have closed the connection. Then the write fails.
    let _ = to_server.write_all(&on_the_way).await;
    let _ = to_server.shutdown().await;
    answers.await.unwrap();
    delivers.send_replace(Some(end));
}
