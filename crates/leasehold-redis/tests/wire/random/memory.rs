//! A server in memory, whose clock the test moves, and clients of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{Read, Result, Write};
use std::rc::Rc;
use std::time::Duration;

use leasehold_fakeredis::{ConnectionId, FakeRedis};
use leasehold_testkit::SeededEntropy;

use crate::fixture::TestClient;

const START_US: u64 = 1_763_637_400_000_000;

#[derive(Clone)]
pub(super) struct MemoryServer {
    redis: Rc<RefCell<FakeRedis>>,
    now_us: Rc<Cell<u64>>,
}

impl MemoryServer {
    pub(super) fn start() -> Self {
        Self {
            redis: Rc::new(RefCell::new(FakeRedis::new(1, START_US))),
            now_us: Rc::new(Cell::new(START_US)),
        }
    }

    /// Returns a client that neither listens nor is present.
    pub(super) fn client(&self, seed: u64) -> TestClient {
        let stream = MemoryStream {
            connection: self.redis.borrow_mut().connect(),
            server: self.clone(),
            unread: VecDeque::new(),
        };
        TestClient::over(Box::new(stream), Box::new(SeededEntropy::new(seed)))
    }

    /// Returns the server's clock.
    pub(super) fn now_ms(&self) -> u64 {
        self.now_us.get() / 1000
    }

    pub(super) fn forward(&self, span: Duration) {
        self.now_us.set(self.now_us.get() + span.as_micros() as u64);
    }
}

struct MemoryStream {
    server: MemoryServer,
    connection: ConnectionId,
    unread: VecDeque<u8>,
}

impl Write for MemoryStream {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut redis = self.server.redis.borrow_mut();
        redis.receive(self.server.now_us.get(), self.connection, bytes);
        self.unread.extend(redis.take_bytes(self.connection));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Read for MemoryStream {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut redis = self.server.redis.borrow_mut();
        self.unread.extend(redis.take_bytes(self.connection));
        self.unread.read(buffer)
    }
}
