use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use socket2::SockRef;

/// What a [`Proxy`] does with the bytes that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// Passes everything on.
    None,
    /// Passes requests on immediately, and delays each answer by this span.
    SlowAnswers(Duration),
    /// Swallows everything that either side sends, and notifies neither, as a router that forgot a
    /// connection does. A connection that lost something stays dead when the fault clears.
    HalfOpen,
    /// Resets the open connections, and new ones immediately.
    Refusing,
}

/// A network path to one server on the loopback interface. A test decides on the fault. Dropping the
/// handle ends it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    path: Arc<Path>,
}

/// One path, its connections, and how it treats their bytes.
#[derive(Debug)]
struct Path {
    server: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    fault: NetworkFault,
    open: HashMap<u64, Arc<Connection>>,
    /// The connections whose requests are held back, until the server has run them.
    held: HashMap<u64, Arc<Connection>>,
    opened: u64,
    ended: bool,
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: TcpStream,
    /// Something was lost on this connection, so nothing that follows may be passed on.
    dead: AtomicBool,
    /// What the client sends is held back.
    held: AtomicBool,
}

impl Proxy {
    /// Returns a path to the server on `port`, without a fault.
    ///
    /// # Panics
    ///
    /// If there is no free port, or no thread can be started.
    pub fn to(port: u16) -> Self {
        Self::try_to(port).unwrap_or_else(|error| panic!("a proxy to {port}: {error}"))
    }

    fn try_to(server: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let state = State {
            fault: NetworkFault::None,
            open: HashMap::new(),
            held: HashMap::new(),
            opened: 0,
            ended: false,
        };
        let path = Arc::new(Path {
            server,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&path);
        Builder::new().name("proxy".into()).spawn(move || {
            for client in listener.incoming() {
                if accepting.state().ended {
                    return;
                }
                // If the client is gone or the server is down, the client sees a reset.
                let _ = client.and_then(|client| accepting.join(client));
            }
        })?;
        Ok(Self { port, path })
    }

    /// Returns the port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes the fault, also for open connections.
    pub fn set(&self, fault: NetworkFault) {
        self.path.state().fault = fault;
        self.path.changed.notify_all();
        if fault == NetworkFault::Refusing {
            self.cut();
        }
    }

    /// Resets every open connection on both sides. New connections are accepted.
    pub fn cut(&self) {
        let open = std::mem::take(&mut self.path.state().open);
        for connection in open.values() {
            connection.reset();
        }
    }

    /// Returns whether an open connection lost something.
    pub fn has_lost(&self) -> bool {
        let state = self.path.state();
        let mut open = state.open.values();
        open.any(|connection| connection.dead.load(Ordering::SeqCst))
    }

    /// Holds back what clients send on the connections that are open now, even after the clients close them. New
    /// connections work.
    pub fn hold_requests(&self) {
        let mut state = self.path.state();
        for connection in state.open.values() {
            connection.held.store(true, Ordering::SeqCst);
        }
        state.held = state.open.clone();
    }

    /// Passes on what was held back on connections that their clients closed, and closes them at the server.
    pub fn deliver_requests(&self) {
        for connection in self.path.state().held.values() {
            connection.held.store(false, Ordering::SeqCst);
        }
        self.path.changed.notify_all();
    }

    /// Returns whether requests are held back that the server has not run yet.
    pub fn holds_requests(&self) -> bool {
        !self.path.state().held.is_empty()
    }

    /// How many connections clients opened so far.
    pub fn opened(&self) -> u64 {
        self.path.state().opened
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.path.state().open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.path.state().ended = true;
        self.path.changed.notify_all();
        self.cut();
        // Wakes the thread that accepts. If this fails, that thread is gone already.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Path {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins a client to the server, with threads for this connection.
    fn join(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
        if self.state().fault == NetworkFault::Refusing {
            return Ok(());
        }
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        SockRef::from(&client).set_linger(None)?;
        let connection = Arc::new(Connection {
            client,
            server,
            dead: AtomicBool::new(false),
            held: AtomicBool::new(false),
        });
        let id = {
            let mut state = self.state();
            state.opened += 1;
            let id = state.opened;
            state.open.insert(id, Arc::clone(&connection));
            id
        };
        let (path, requests) = (Arc::clone(self), Arc::clone(&connection));
        Builder::new().spawn(move || {
            let mut kept = Vec::new();
            path.carry(&requests, &requests.client, |bytes, _| {
                kept.extend_from_slice(bytes);
                if requests.held.load(Ordering::SeqCst) {
                    return Ok(());
                }
                (&requests.server).write_all(&std::mem::take(&mut kept))
            });
            path.wait_while_held(&requests);
            // The server may have closed the connection.
            let _ = (&requests.server).write_all(&kept);
            requests.close(&requests.server);
            if path.state().held.contains_key(&id) {
                // The server closes the connection when it has run everything.
                let mut rest = [0; 1024];
                while let Ok(1..) = (&requests.server).read(&mut rest) {}
                path.state().held.remove(&id);
            }
        })?;
        let (answers, due) = mpsc::channel::<(BootInstant, Vec<u8>)>();
        let (path, reading) = (Arc::clone(self), Arc::clone(&connection));
        Builder::new().spawn(move || {
            path.carry(&reading, &reading.server, |bytes, fault| {
                let delay = match fault {
                    NetworkFault::SlowAnswers(delay) => delay,
                    _ => Duration::ZERO,
                };
                let answer = (SystemClock.now() + delay, bytes.to_vec());
                answers.send(answer).map_err(io::Error::other)
            });
        })?;
        let path = Arc::clone(self);
        Builder::new().spawn(move || {
            for (at, bytes) in due {
                path.wait_until(at);
                let lost = connection.dead.load(Ordering::SeqCst);
                if !lost && (&connection.client).write_all(&bytes).is_err() {
                    break;
                }
            }
            connection.close(&connection.client);
            path.state().open.remove(&id);
        })?;
        Ok(())
    }

    /// Passes on what `from` sends, while the fault lets anything through.
    fn carry(
        &self,
        connection: &Connection,
        mut from: &TcpStream,
        mut pass: impl FnMut(&[u8], NetworkFault) -> io::Result<()>,
    ) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let fault = self.state().fault;
            if fault == NetworkFault::HalfOpen {
                connection.dead.store(true, Ordering::SeqCst);
            }
            let lost = connection.dead.load(Ordering::SeqCst);
            if !lost && pass(&buffer[..count], fault).is_err() {
                return;
            }
        }
        if self.state().fault == NetworkFault::HalfOpen {
            connection.dead.store(true, Ordering::SeqCst);
        }
    }

    /// Waits until the requests of a connection may pass, or for the end of the proxy.
    fn wait_while_held(&self, connection: &Connection) {
        let mut state = self.state();
        while !state.ended && connection.held.load(Ordering::SeqCst) {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for `due`, or for the end of the proxy.
    fn wait_until(&self, due: BootInstant) {
        let mut state = self.state();
        while !state.ended {
            let left = due.since(SystemClock.now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Connection {
    /// Closes one side after the other one closed, unless the network would have lost that, too.
    fn close(&self, side: &TcpStream) {
        if !self.dead.load(Ordering::SeqCst) {
            // This side may be closed already.
            let _ = side.shutdown(Shutdown::Write);
        }
    }

    /// Makes both sides reset when the threads that read from them drop them.
    fn reset(&self) {
        self.dead.store(true, Ordering::SeqCst);
        for side in [&self.client, &self.server] {
            // A side that has closed in the meantime needs no reset.
            let _ = SockRef::from(side).set_linger(Some(Duration::ZERO));
            let _ = side.shutdown(Shutdown::Read);
        }
    }
}
