use std::ops::{Deref, DerefMut};
use std::thread;

use crate::servers::{RedisBuilder, RedisServer};

/// Several independent servers: the members of a quorum.
#[derive(Debug)]
pub struct RedisSet {
    servers: Vec<RedisServer>,
}

impl RedisSet {
    /// Starts `count` servers with default settings, all at once.
    ///
    /// # Panics
    ///
    /// As [`RedisBuilder::start`].
    pub fn start(count: usize) -> Self {
        Self::start_each(count, &RedisServer::builder())
    }

    /// Starts `count` servers with the same settings, all at once.
    ///
    /// # Panics
    ///
    /// As [`RedisBuilder::start`].
    pub fn start_each(count: usize, settings: &RedisBuilder) -> Self {
        let servers = thread::scope(|scope| {
            let starting: Vec<_> = (0..count)
                .map(|_| scope.spawn(|| settings.clone().try_start()))
                .collect();
            let started = starting.into_iter().map(|start| match start.join() {
                Ok(Ok(server)) => server,
                Ok(Err(error)) => panic!("{error}"),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            started.collect()
        });
        Self { servers }
    }

    /// Returns the addresses of all servers.
    pub fn urls(&self) -> Vec<String> {
        self.iter().map(RedisServer::url).collect()
    }
}

impl Deref for RedisSet {
    type Target = [RedisServer];

    fn deref(&self) -> &Self::Target {
        &self.servers
    }
}

impl DerefMut for RedisSet {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.servers
    }
}
