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
use super::bare::{connect, request};
use super::task::Task;
use crate::error::Fallible;

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

pub(super) async fn handles(task: &Task) -> Fallible<Vec<Waiter>> {
    let mut servers = Vec::new();
    for port in &task.ports {
        servers.push(Server {
            connection: connect(*port).await?,
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
    async fn ask(&mut self, request: &[u8]) -> Fallible {
        for server in &mut self.0 {
            server.connection.write_all(request).await?;
            server.owed += 1;
        }
        let majority = self.0.len() / 2 + 1;
        let answered = poll_fn(|context| {
            let mut answered = 0;
            for server in &mut self.0 {
                answered += usize::from(server.poll_answers(context)?.is_ready());
            }
            match answered >= majority {
                true => Poll::Ready(Ok::<(), io::Error>(())),
                false => Poll::Pending,
            }
        });
        Ok(answered.await?)
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
    ) -> Fallible<OwnedMutexGuard<Servers>> {
        servers.ask(&self.queue.take).await?;
        Ok(servers)
    }
}

impl Handle for Waiter {
    type Held = OwnedMutexGuard<Servers>;

    async fn acquire(&self) -> Fallible<Self::Held> {
        self.queue.wanting.fetch_add(1, Ordering::Relaxed);
        // First come, first served.
        let servers = Arc::clone(&self.queue.servers).lock_owned().await;
        self.taken(servers).await
    }

    async fn try_acquire(&self) -> Fallible<Option<Self::Held>> {
        let Ok(servers) = Arc::clone(&self.queue.servers).try_lock_owned() else {
            return Ok(None);
        };
        self.queue.wanting.fetch_add(1, Ordering::Relaxed);
        self.taken(servers).await.map(Some)
    }

    async fn release(&self, mut servers: Self::Held) -> Fallible {
        // The next waiter overwrites it.
        if self.queue.wanting.fetch_sub(1, Ordering::Relaxed) == 1 {
            servers.ask(&self.queue.give).await?;
        }
        Ok(())
    }
}
