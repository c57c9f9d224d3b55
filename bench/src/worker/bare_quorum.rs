use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::Handle;
use super::bare::request;
use super::task::Task;

/// What one or several servers allow: waiters queue in their own process. The next one writes its key to
/// all servers with one plain SET each, on bare sockets, and continues with the answers of a majority. It
/// is no lock, because other processes have no say.
pub(super) struct Waiter {
    queue: Arc<LocalQueue>,
}

struct LocalQueue {
    servers: Arc<Mutex<Servers>>,
    /// How many want the lock, or hold it.
    wanting: AtomicUsize,
    take: Vec<u8>,
    give: Vec<u8>,
}

pub(super) struct Servers(Vec<Server>);

struct Server {
    connection: TcpStream,
    /// The number of answers that are still to come, a line each.
    owed: usize,
}

pub(super) async fn handles(task: &Task) -> Result<Vec<Waiter>, String> {
    let mut servers = Vec::new();
    for port in &task.ports {
        let connection = TcpStream::connect(format!("127.0.0.1:{port}")).await;
        let connection = connection.map_err(|error| error.to_string())?;
        let prompt = connection.set_nodelay(true);
        prompt.map_err(|error| error.to_string())?;
        servers.push(Server {
            connection,
            owed: 0,
        });
    }
    let key = task.keys().next().ok_or("no waiter was configured")?;
    let queue = Arc::new(LocalQueue {
        servers: Arc::new(Mutex::new(Servers(servers))),
        wanting: AtomicUsize::new(0),
        take: request(&["SET", &key, "token", "PX", "30000"]),
        give: request(&["DEL", &key]),
    });
    let waiter = |_| Waiter {
        queue: Arc::clone(&queue),
    };
    Ok((0..task.waiters).map(waiter).collect())
}

impl Servers {
    /// Sends `request` to all, and waits until a majority has answered all that it was asked.
    async fn ask(&mut self, request: &[u8]) -> Result<(), String> {
        for server in &mut self.0 {
            let sent = server.connection.write_all(request).await;
            sent.map_err(|error| error.to_string())?;
            server.owed += 1;
        }
        let majority = self.0.len() / 2 + 1;
        poll_fn(|context| self.poll_majority(majority, context)).await
    }

    fn poll_majority(
        &mut self,
        majority: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), String>> {
        for server in &mut self.0 {
            if let Poll::Ready(Err(error)) = server.poll_answers(context) {
                return Poll::Ready(Err(error.to_string()));
            }
        }
        let answered = self.0.iter().filter(|server| server.owed == 0).count();
        if answered >= majority {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }
}

impl Server {
    fn poll_answers(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut room = [0; 256];
        while self.owed > 0 {
            let mut answers = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut self.connection).poll_read(context, &mut answers))?;
            let answers = answers.filled();
            if answers.is_empty() || answers.contains(&b'-') {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            let lines = answers.iter().filter(|byte| **byte == b'\n').count();
            self.owed = self.owed.saturating_sub(lines);
        }
        Poll::Ready(Ok(()))
    }
}

impl Waiter {
    async fn taken(
        &self,
        mut servers: OwnedMutexGuard<Servers>,
    ) -> Result<OwnedMutexGuard<Servers>, String> {
        servers.ask(&self.queue.take).await?;
        Ok(servers)
    }
}

impl Handle for Waiter {
    type Held = OwnedMutexGuard<Servers>;

    async fn acquire(&self) -> Result<Self::Held, String> {
        self.queue.wanting.fetch_add(1, Ordering::Relaxed);
        // First come, first served.
        let servers = Arc::clone(&self.queue.servers).lock_owned().await;
        self.taken(servers).await
    }

    async fn try_acquire(&self) -> Result<Option<Self::Held>, String> {
        let Ok(servers) = Arc::clone(&self.queue.servers).try_lock_owned() else {
            return Ok(None);
        };
        self.queue.wanting.fetch_add(1, Ordering::Relaxed);
        self.taken(servers).await.map(Some)
    }

    async fn release(&self, mut servers: Self::Held) -> Result<(), String> {
        // The next waiter overwrites it.
        if self.queue.wanting.fetch_sub(1, Ordering::Relaxed) == 1 {
            servers.ask(&self.queue.give).await?;
        }
        Ok(())
    }
}
