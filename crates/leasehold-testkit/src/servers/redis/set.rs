use std::ops::{Index, IndexMut};
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

    /// Returns the number of servers, running or not.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Iterates over the servers.
    pub fn iter(&self) -> std::slice::Iter<'_, RedisServer> {
        self.servers.iter()
    }

    /// Iterates over the servers, to kill and restart them.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, RedisServer> {
        self.servers.iter_mut()
    }
}

impl Index<usize> for RedisSet {
    type Output = RedisServer;

    fn index(&self, index: usize) -> &RedisServer {
        &self.servers[index]
    }
}

impl IndexMut<usize> for RedisSet {
    fn index_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.servers[index]
    }
}
