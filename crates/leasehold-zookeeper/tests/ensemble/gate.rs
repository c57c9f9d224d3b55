use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Builder;

use leasehold::store::locked;

use crate::support::until;

/// A path to one server that stops a client at its next transaction.
pub(crate) struct Gate {
    port: u16,
    inner: Arc<Inner>,
}

struct Inner {
    server: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: Option<Stop>,
    is_stopped: bool,
    /// Whether answers get lost.
    is_mute: bool,
    open: Vec<TcpStream>,
}

/// Where requests stop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    BeforeTransaction,
    BehindTransaction,
}

/// The code of a transaction, behind the length and the number of the request.
const TRANSACTION: &[u8] = &14_i32.to_be_bytes();

impl Gate {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, changed) = (Mutex::default(), Condvar::new());
        let inner = Arc::new(Inner {
            server,
            state,
            changed,
        });
        let accepting = Arc::clone(&inner);
        let accept = move || {
            for client in listener.incoming() {
                // The server may have ended.
                let _ = client.and_then(|client| accepting.join(client));
            }
        };
        start(accept).unwrap();
        Self { port, inner }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Stops the requests at the next transaction.
    pub(crate) fn stop(&self, at: Stop) {
        locked(&self.inner.state).stop = Some(at);
    }

    pub(crate) async fn stopped(&self) {
        until("a transaction", async || {
            locked(&self.inner.state).is_stopped
        })
        .await;
    }

    /// Loses all answers until the next cut.
    pub(crate) fn mute(&self) {
        locked(&self.inner.state).is_mute = true;
    }

    /// Passes the requests on that were stopped.
    pub(crate) fn go_on(&self) {
        locked(&self.inner.state).is_stopped = false;
        self.inner.changed.notify_all();
    }

    /// Ends the connections. What was stopped is lost.
    pub(crate) fn cut(&self) {
        let mut state = locked(&self.inner.state);
        for stream in state.open.drain(..) {
            // The other side may have closed it.
            let _ = stream.shutdown(Shutdown::Both);
        }
        state.is_mute = false;
        drop(state);
        self.go_on();
    }
}

fn start(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name("gate".into()).spawn(work).map(drop)
}

impl Inner {
    fn join(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server))?;
        server.set_nodelay(true)?;
        client.set_nodelay(true)?;
        let both = [client.try_clone()?, server.try_clone()?];
        locked(&self.state).open.extend(both);
        let (mut requests, mut to_server) = (client.try_clone()?, server.try_clone()?);
        let inner = Arc::clone(self);
        start(move || while inner.pass_request(&mut requests, &mut to_server).is_ok() {})?;
        let (mut answers, mut to_client, inner) = (server, client, Arc::clone(self));
        start(move || while inner.pass_answers(&mut answers, &mut to_client).is_ok() {})
    }

    fn pass_request(&self, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
        let mut frame = vec![0; 4];
        from.read_exact(&mut frame)?;
        let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        frame.resize(4 + length as usize, 0);
        from.read_exact(&mut frame[4..])?;
        let is_transaction = frame.get(8..12) == Some(TRANSACTION);
        self.pause_at(is_transaction.then_some(Stop::BeforeTransaction));
        to.write_all(&frame)?;
        self.pause_at(is_transaction.then_some(Stop::BehindTransaction));
        Ok(())
    }

    fn pause_at(&self, at: Option<Stop>) {
        let mut state = locked(&self.state);
        if at.is_none() || state.stop != at {
            return;
        }
        (state.stop, state.is_stopped) = (None, true);
        while state.is_stopped {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn pass_answers(&self, from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let count = from.read(&mut buffer)?;
        if count == 0 {
            to.shutdown(Shutdown::Both)?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match locked(&self.state).is_mute {
            true => Ok(()),
            false => to.write_all(&buffer[..count]),
        }
    }
}
