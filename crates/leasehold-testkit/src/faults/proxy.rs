use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold::store::locked;
use socket2::SockRef;

/// What a [`Proxy`] does with the bytes that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkFault {
    /// Passes everything on.
    None,
    /// Passes requests on immediately, and delays each answer by this span.
    SlowAnswers(Duration),
    /// Delays each request by this span, and with it all that its connection sends later. A request arrives
    /// even if its client closes the connection meanwhile.
    SlowRequests(Duration),
    /// Passes requests on immediately, and holds each answer back until the fault clears.
    Mute,
    /// Holds everything back on both sides until the fault clears, as a server that was stopped does. Requests
    /// arrive then even if their client closed the connection meanwhile.
    Frozen,
    /// Swallows everything that either side sends, and notifies neither, as a router that forgot a
    /// connection does. A connection that lost something stays dead when the fault clears.
    HalfOpen,
    /// Resets the open connections, and new ones immediately.
    Refusing,
}

/// The moment at which a [`Proxy`] cuts a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Before the request reaches the server.
    BeforeRequest,
    /// After the server carried the request out: before its answer reaches the client.
    BeforeAnswer,
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
    state: Mutex<PathState>,
    changed: Condvar,
}

#[derive(Debug)]
struct PathState {
    fault: NetworkFault,
    open: HashMap<u64, Arc<Connection>>,
    /// The connections whose requests are held back, until the server has run them.
    held: HashMap<u64, Arc<Connection>>,
    opened: u64,
    requests: u64,
    /// The number of the request that is cut.
    cut: Option<(u64, Cut)>,
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
    /// The next answer is lost, and the connection with it.
    is_cut_at_answer: AtomicBool,
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
        let state = PathState {
            fault: NetworkFault::None,
            open: HashMap::new(),
            held: HashMap::new(),
            opened: 0,
            requests: 0,
            cut: None,
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
                if locked(&accepting.state).ended {
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
        locked(&self.path.state).fault = fault;
        self.path.changed.notify_all();
        if fault == NetworkFault::Refusing {
            self.cut();
        }
    }

    /// Resets every open connection on both sides. New connections are accepted.
    pub fn cut(&self) {
        let open = std::mem::take(&mut locked(&self.path.state).open);
        for connection in open.values() {
            connection.reset();
        }
        self.path.changed.notify_all();
    }

    /// Resets the connection of a later request, once: the next request has number 1. A request is what a client
    /// sends at once, on any connection.
    pub fn cut_at(&self, request: u64, cut: Cut) {
        let mut state = locked(&self.path.state);
        state.cut = Some((state.requests + request, cut));
    }

    /// Ends the wait for the request that [`cut_at`](Self::cut_at) named. Returns whether it has come.
    pub fn has_cut(&self) -> bool {
        locked(&self.path.state).cut.take().is_none()
    }

    /// Returns how many requests the clients sent so far: how often bytes came from them.
    pub fn requests(&self) -> u64 {
        locked(&self.path.state).requests
    }

    /// Returns whether an open connection lost something.
    pub fn has_lost(&self) -> bool {
        let state = locked(&self.path.state);
        let mut open = state.open.values();
        open.any(|connection| connection.dead.load(Ordering::SeqCst))
    }

    /// Holds back what clients send on the connections that are open now, even after the clients close them. New
    /// connections work.
    pub fn hold_requests(&self) {
        let mut state = locked(&self.path.state);
        for connection in state.open.values() {
            connection.held.store(true, Ordering::SeqCst);
        }
        state.held = state.open.clone();
    }

    /// Closes the connections whose requests are held back, at their clients only. The requests are still on the way.
    pub fn close_held(&self) {
        for connection in locked(&self.path.state).held.values() {
            // The client may have closed it.
            let _ = connection.client.shutdown(Shutdown::Both);
        }
    }

    /// Passes on what was held back. Connections that their clients closed are then closed at the server, too.
    pub fn deliver_requests(&self) {
        for connection in locked(&self.path.state).held.values() {
            connection.held.store(false, Ordering::SeqCst);
        }
        self.path.changed.notify_all();
    }

    /// Returns whether a connection whose requests were held back is still open at the server.
    pub fn holds_requests(&self) -> bool {
        !locked(&self.path.state).held.is_empty()
    }

    /// How many connections clients opened so far.
    pub fn opened(&self) -> u64 {
        locked(&self.path.state).opened
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        locked(&self.path.state).open.len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        locked(&self.path.state).ended = true;
        self.path.changed.notify_all();
        self.cut();
        // Wakes the thread that accepts. If this fails, that thread is gone already.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Path {
    /// Joins a client to the server, with threads for this connection.
    fn join(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
        if locked(&self.state).fault == NetworkFault::Refusing {
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
            is_cut_at_answer: AtomicBool::new(false),
        });
        let id = {
            let mut state = locked(&self.state);
            state.opened += 1;
            let id = state.opened;
            state.open.insert(id, Arc::clone(&connection));
            id
        };
        let (path, requests) = (Arc::clone(self), Arc::clone(&connection));
        Builder::new().spawn(move || {
            path.carry(&requests, &requests.client, |bytes, fault| {
                path.receive(&requests, fault)?;
                (&requests.server).write_all(bytes)
            });
            path.wait_while_held(&requests);
            requests.close(&requests.server);
            if locked(&path.state).held.contains_key(&id) {
                // The server closes the connection when it has run everything.
                let mut rest = [0; 1024];
                while let Ok(1..) = (&requests.server).read(&mut rest) {}
                locked(&path.state).held.remove(&id);
            }
        })?;
        let (answers, due) = mpsc::channel::<(BootInstant, Vec<u8>)>();
        let (path, reading) = (Arc::clone(self), Arc::clone(&connection));
        Builder::new().spawn(move || {
            path.carry(&reading, &reading.server, |bytes, fault| {
                if reading.is_cut_at_answer.load(Ordering::SeqCst) {
                    return path.reset(&reading);
                }
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
                path.wait_until(at, &connection);
                path.wait_while(&connection, |state| {
                    matches!(state.fault, NetworkFault::Mute | NetworkFault::Frozen)
                });
                let lost = connection.dead.load(Ordering::SeqCst);
                if !lost && (&connection.client).write_all(&bytes).is_err() {
                    break;
                }
            }
            connection.close(&connection.client);
            locked(&path.state).open.remove(&id);
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
            let fault = locked(&self.state).fault;
            if fault == NetworkFault::HalfOpen {
                connection.dead.store(true, Ordering::SeqCst);
            }
            let lost = connection.dead.load(Ordering::SeqCst);
            if !lost && pass(&buffer[..count], fault).is_err() {
                return;
            }
        }
        if locked(&self.state).fault == NetworkFault::HalfOpen {
            connection.dead.store(true, Ordering::SeqCst);
        }
    }

    /// Counts a request, and holds it up or cuts it as the test wants.
    fn receive(&self, connection: &Connection, fault: NetworkFault) -> io::Result<()> {
        let cut = {
            let mut state = locked(&self.state);
            state.requests += 1;
            let number = state.requests;
            state.cut.take_if(|(request, _)| *request <= number)
        };
        match cut {
            Some((_, Cut::BeforeRequest)) => return self.reset(connection),
            Some((_, Cut::BeforeAnswer)) => {
                connection.is_cut_at_answer.store(true, Ordering::SeqCst);
            }
            None => {}
        }
        if let NetworkFault::SlowRequests(span) = fault {
            self.wait_until(SystemClock.now() + span, connection);
        }
        self.wait_while(connection, |state| state.fault == NetworkFault::Frozen);
        self.wait_while_held(connection);
        if connection.dead.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    /// Resets a connection, whose threads then end.
    fn reset(&self, connection: &Connection) -> io::Result<()> {
        connection.reset();
        self.changed.notify_all();
        Err(io::ErrorKind::ConnectionReset.into())
    }

    /// Waits until the requests of a connection may pass, or for the end of the proxy.
    fn wait_while_held(&self, connection: &Connection) {
        self.wait_while(connection, |_| connection.held.load(Ordering::SeqCst));
    }

    /// Waits until `holds` is false, or for the end of the connection or the proxy.
    fn wait_while(&self, connection: &Connection, holds: impl Fn(&PathState) -> bool) {
        let mut state = locked(&self.state);
        while !state.ended && !connection.dead.load(Ordering::SeqCst) && holds(&state) {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for `due`, or for the end of the connection or the proxy.
    fn wait_until(&self, due: BootInstant, connection: &Connection) {
        let mut state = locked(&self.state);
        while !state.ended && !connection.dead.load(Ordering::SeqCst) {
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
