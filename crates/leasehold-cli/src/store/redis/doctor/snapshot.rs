use std::time::Duration;

use leasehold::member::{
    MemberHealth, MemberId, MemberRecord, MemberSet, MemberStatus, requests_run_in,
};
use leasehold::once::Once;
use leasehold::{Client, Error};
use leasehold_redis::{Examination, Need, RedisMember, RedisStore};

use crate::output::failure::Failure;
use crate::output::quorum_shortfall::{have_no_record, needed};
use crate::store::limit::ask_all;

/// The servers of a store, as they were found. Nothing was written to any of them.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) set: MemberSet,
    /// Whether it is a quorum that is not initialized.
    pub(super) is_uninitialized: bool,
    pub(super) servers: Vec<Server>,
    /// The time until `once` runs commands, if that is known.
    pub(super) requests_in: Option<Duration>,
}

/// One server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) id: MemberId,
    pub(super) found: Result<Examination, Error>,
    /// Why it has no vote, if so.
    pub(super) out: Option<NoVote>,
}

/// Why a server has no vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoVote {
    pub(super) why: String,
    /// The time until it has a vote again, if known.
    pub(super) again: Option<Duration>,
}

impl Snapshot {
    /// Asks all servers of a store at once, each for at most `limit`, which writes nothing.
    pub(super) async fn find(store: RedisStore, limit: Duration) -> Result<Self, Failure> {
        let examined = ask_all(limit, store.members().iter().map(RedisMember::examine)).await;
        let is_uninitialized = is_uninitialized(&examined);
        let health = if is_uninitialized {
            Vec::new()
        } else {
            Client::new(store.clone()).health().await?
        };
        let servers = store.member_ids().cloned().zip(examined).enumerate();
        let servers = servers.map(|(index, (id, found))| {
            let out = NoVote::of(&found, health.get(index));
            Server { id, found, out }
        });
        let servers: Vec<Server> = servers.collect();
        let mut snapshot = Self {
            set: store.stated_set(servers.iter().filter_map(Server::member_record)),
            is_uninitialized,
            servers,
            requests_in: requests_run_in(&health, Once::DEFAULT_RETENTION),
        };
        snapshot.expect_nothing_of_wrong_clocks();
        Ok(snapshot)
    }

    /// Whether there are enough servers for a majority without all of them.
    pub(super) fn is_quorum(&self) -> bool {
        self.servers.len() >= 3
    }

    pub(super) fn voting(&self) -> usize {
        let counts = |server: &&Server| server.out.is_none();
        self.servers.iter().filter(counts).count()
    }

    pub(super) fn needed(&self) -> usize {
        needed(self.servers.len())
    }

    /// The lower median of the clocks of the servers, relative to this machine, in microseconds.
    pub(super) fn median(&self) -> Option<i64> {
        let offsets = self.servers.iter().filter_map(Server::clock_offset);
        let mut offsets: Vec<i64> = offsets.collect();
        offsets.sort_unstable();
        let middle = offsets.len().checked_sub(1)? / 2;
        offsets.get(middle).copied()
    }

    /// The clock of `server` relative to that median.
    pub(super) fn clock_off(&self, server: &Server) -> Option<i64> {
        Some(server.clock_offset()?.saturating_sub(self.median()?))
    }

    /// Whether that is more than the quorum tolerates.
    pub(super) fn has_wrong_clock(&self, server: &Server) -> bool {
        let off = self.clock_off(server).filter(|_| self.is_quorum());
        off.is_some_and(|off| Duration::from_micros(off.unsigned_abs()) > self.set.clock_tolerance)
    }

    /// A server with a wrong clock has no vote until an operator sets the clock, at an unknown time.
    pub(super) fn expect_nothing_of_wrong_clocks(&mut self) {
        for index in 0..self.servers.len() {
            if self.has_wrong_clock(&self.servers[index])
                && let Some(out) = &mut self.servers[index].out
            {
                out.again = None;
            }
        }
    }

    /// Whether the servers that answer are enough for a client to give one of them a new member record.
    pub(super) fn can_restore(&self) -> bool {
        let has_member_record = |it: &&Server| {
            it.member_record()
                .is_some_and(|member_record| member_record.set == self.set)
        };
        let answer = self.servers.iter().all(|it| it.status().is_some());
        answer || self.servers.iter().filter(has_member_record).count() >= self.needed()
    }

    /// How long a server that may have forgotten locks has no vote.
    pub(super) fn penalty(&self) -> Duration {
        self.set.max_ttl + Duration::from_secs(1)
    }
}

/// Whether the quorum is not initialized. False if the user may not read the records.
pub(super) fn is_uninitialized(examined: &[Result<Examination, Error>]) -> bool {
    let hides_its_record = examined.iter().flatten().any(hides_its_record);
    !hides_its_record && have_no_record(examined.len(), examined.iter().filter_map(status))
}

fn hides_its_record(found: &Examination) -> bool {
    let mut rights = found.missing_rights.iter();
    rights.any(|right| right.need == Need::Sets)
}

fn status(found: &Result<Examination, Error>) -> Option<&MemberStatus> {
    found.as_ref().ok()?.status.as_ref().ok()
}

impl Server {
    pub(super) fn status(&self) -> Option<&MemberStatus> {
        status(&self.found)
    }

    pub(super) fn member_record(&self) -> Option<&MemberRecord> {
        self.status()?.member_record.as_ref()
    }

    /// Whether the user may not read its record of the quorum.
    pub(super) fn hides_its_record(&self) -> bool {
        self.found.as_ref().is_ok_and(hides_its_record)
    }

    pub(super) fn clock_offset(&self) -> Option<i64> {
        self.found.as_ref().ok()?.clock_offset
    }
}

impl NoVote {
    fn of(found: &Result<Examination, Error>, health: Option<&MemberHealth>) -> Option<Self> {
        let (error, again) = match (found, health) {
            (Err(error), _) => (error, None),
            (Ok(_), None) => {
                let why = "the quorum is not initialized".to_owned();
                return Some(Self { why, again: None });
            }
            (Ok(_), Some(health)) => match (&health.status, &health.untrusted_reason) {
                (Err(error), _) => (error, None),
                (Ok(_), Some(out)) => (&out.error, out.eligible_after),
                (Ok(_), None) => return None,
            },
        };
        let why = error.reason().to_owned();
        Some(Self { why, again })
    }
}
