//! A connection: one task reads and writes it, and each answer finds the call that waits for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use leasehold::store::{Busy, SessionContext, locked};
use leasehold::{Error, ErrorKind, Fence};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A connection that several calls use at once.
#[derive(Debug)]
pub(crate) struct Link {
    out: UnboundedSender<String>,
    calls: Mutex<Calls>,
}

#[derive(Debug)]
struct Calls {
    last: u64,
    /// The calls that wait for answers; `None` once the connection is closed.
    open: Option<HashMap<u64, UnboundedSender<Reply>>>,
}

/// A request that was sent.
#[derive(Debug)]
pub(crate) struct Call {
    id: u64,
    link: Arc<Link>,
    replies: UnboundedReceiver<Reply>,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) enum Reply {
    Granted(Fence),
    Busy(Busy),
    Queued(Busy),
    Turn,
    Done(bool),
    Rows(Vec<String>),
    Refused(String),
}

impl Link {
    pub(crate) async fn connect(
        server: SocketAddr,
        context: &SessionContext,
    ) -> Result<Arc<Self>, Error> {
        let stream = TcpStream::connect(server).await.map_err(|error| {
            Error::new(ErrorKind::Unreachable, "no connection").with_source(error)
        })?;
        let (out, lines) = unbounded_channel();
        let calls = Calls {
            last: 0,
            open: Some(HashMap::new()),
        };
        let link = Arc::new(Self {
            out,
            calls: Mutex::new(calls),
        });
        context.spawn(serve(Arc::downgrade(&link), stream, lines));
        Ok(link)
    }

    pub(crate) fn is_open(&self) -> bool {
        locked(&self.calls).open.is_some()
    }

    /// Ends all calls. Late answers find no call.
    pub(crate) fn close(&self) {
        locked(&self.calls).open = None;
    }

    /// Sends a request. An error means that it was not sent.
    pub(crate) fn send(self: &Arc<Self>, line: &str) -> Result<Call, Error> {
        let (tell, replies) = unbounded_channel();
        let mut calls = locked(&self.calls);
        calls.last += 1;
        let id = calls.last;
        let open = calls.open.as_mut().ok_or_else(broken)?;
        open.insert(id, tell);
        // If the task is gone, it has closed the link, or is about to.
        let _ = self.out.send(format!("{id}\t{line}\n"));
        drop(calls);
        let link = Arc::clone(self);
        Ok(Call { id, link, replies })
    }

    fn deliver(&self, line: &str) {
        let Some((id, reply)) = parse(line) else {
            return self.close();
        };
        // A late answer finds no call: its request was released meanwhile.
        if let Some(call) = locked(&self.calls)
            .open
            .as_ref()
            .and_then(|open| open.get(&id))
        {
            let _ = call.send(reply);
        }
    }
}

impl Call {
    pub(crate) async fn reply(&mut self) -> Result<Reply, Error> {
        let reply = self.replies.recv().await;
        reply.ok_or_else(|| broken().with_unknown_effect())
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(open) = locked(&self.link.calls).open.as_mut() {
            open.remove(&self.id);
        }
    }
}

/// The task of a connection. It ends with the connection, or when the session and its last call are gone.
async fn serve(link: Weak<Link>, stream: TcpStream, mut lines: UnboundedReceiver<String>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read).lines();
    while link.upgrade().is_some_and(|link| link.is_open()) {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) if write.write_all(line.as_bytes()).await.is_ok() => {}
                _ => break,
            },
            line = read.next_line() => match (line, link.upgrade()) {
                (Ok(Some(line)), Some(link)) => link.deliver(&line),
                _ => break,
            },
        }
    }
    if let Some(link) = link.upgrade() {
        link.close();
    }
}

/// Reads an answer, and the number of its call.
fn parse(line: &str) -> Option<(u64, Reply)> {
    let mut fields = line.split('\t');
    let (id, what) = (fields.next()?.parse().ok()?, fields.next()?);
    let mut fields = fields.map(str::to_owned);
    let reply = match what {
        "granted" => Reply::Granted(fields.next()?.parse().ok()?),
        "busy" => Reply::Busy(Busy::by(fields.next()?.parse().ok())),
        "queued" => {
            let mut busy = Busy::by(fields.next()?.parse().ok());
            busy.position = fields.next()?.parse().ok();
            Reply::Queued(busy)
        }
        "turn" => Reply::Turn,
        "done" => Reply::Done(fields.next()? == "true"),
        "rows" => Reply::Rows(fields.collect()),
        "refused" => Reply::Refused(fields.collect()),
        _ => return None,
    };
    Some((id, reply))
}

fn broken() -> Error {
    Error::new(ErrorKind::Unreachable, "the connection is broken")
}
