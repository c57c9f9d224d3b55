use leasehold_testkit::servers::{RedisServer, RedisSet};

/// The servers of a run, as a worker and the counters of CPU time see them.
pub(crate) trait Servers {
    /// The ports where clients connect.
    fn ports(&self) -> Vec<u16>;

    fn pids(&self) -> Vec<u32>;

    /// Variables for the environment of a worker.
    fn variables(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

impl Servers for RedisSet {
    fn ports(&self) -> Vec<u16> {
        self.iter().map(RedisServer::port).collect()
    }

    fn pids(&self) -> Vec<u32> {
        self.iter().map(RedisServer::pid).collect()
    }
}
