//! Clients of one quorum, fed by hand, under virtual time.

mod background;
mod engine;
mod fixture;
mod records;
mod votes;

use std::sync::Arc;
use std::time::Duration;

use crate::Config;
use crate::net::Net;
use crate::tests::values::{RandomEntropy, edited, observe};
use leasehold_types::{
    BootInstant, DataGeneration, Epoch, Error, ErrorKind, Incarnation, MemberId, MemberRecord,
    MemberRecordEdit, MemberSet, MemberStatus, RunId, Sample, WallTime,
};

use super::{Access, MemberEvent, Membership};
use crate::messages::{Reply, Request};
use crate::trust::UntrustedReason;

const MAX_TTL: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_secs(61);
const SECOND: Duration = Duration::from_secs(1);

/// A server whose state a test changes.
#[derive(Clone)]
struct Server {
    run: u64,
    started: Duration,
    /// It cannot have run before.
    is_new: bool,
    durable: bool,
    member_record: Option<MemberRecord>,
    /// How far its clock is ahead.
    ahead: Duration,
    /// It answers no request.
    mute: bool,
    /// It refuses to report its status.
    refuses: bool,
}

/// Servers, and clients of a quorum of the first ones.
pub(crate) struct TestQuorum {
    servers: Vec<Server>,
    /// True time.
    pub(crate) now: Duration,
    /// How far the clients' clock is behind.
    behind: Duration,
}

fn set(count: usize) -> MemberSet {
    let ids = (0..count).map(|n| MemberId::new(format!("m{n}")));
    MemberSet::new(ids, MAX_TTL, Duration::from_millis(250))
}

fn unreachable(text: &str) -> Error {
    Error::new(ErrorKind::Unreachable, text)
}

impl TestQuorum {
    /// Servers that have run for long, without records.
    fn bare(count: usize) -> Self {
        let server = |n: usize| Server {
            run: n as u64,
            started: Duration::ZERO,
            is_new: false,
            durable: false,
            member_record: None,
            ahead: Duration::ZERO,
            mute: false,
            refuses: false,
        };
        Self {
            servers: (0..count).map(server).collect(),
            now: 1_000_000 * SECOND,
            behind: Duration::ZERO,
        }
    }

    /// A quorum that was initialized long ago, and a client that knows it.
    pub(crate) fn new(count: usize) -> (Self, Membership) {
        let mut quorum = Self::bare(count);
        quorum.client(set(count), true);
        quorum.now += 1000 * SECOND;
        let client = quorum.client(set(count), true);
        (quorum, client)
    }

    /// The same, with everything that the client's operations share.
    pub(crate) fn with_net(count: usize) -> (Self, Net) {
        let (quorum, membership) = Self::new(count);
        let mut net = Net::new(Config {
            set: set(count),
            enforced: true,
            read_only: false,
            entropy: Arc::new(RandomEntropy),
        });
        net.membership = membership;
        for member in &mut net.members {
            member.connected = Some(quorum.ours());
        }
        (quorum, net)
    }

    /// A client that connected to all members of `set`.
    fn client(&mut self, set: MemberSet, enforced: bool) -> Membership {
        let mut client = Membership::new(set, enforced, false, Arc::new(RandomEntropy));
        for member in 0..client.len() {
            client.connected(self.ours(), member.into());
        }
        self.settle(&mut client);
        client
    }

    fn server(&self, client: &Membership, member: usize) -> usize {
        let number = client.id(member.into()).as_str().strip_prefix('m');
        number.unwrap().parse().unwrap()
    }

    pub(crate) fn ours(&self) -> BootInstant {
        BootInstant::from_nanos((self.now - self.behind).as_nanos() as u64)
    }

    fn wall(&self, server: usize) -> WallTime {
        WallTime::from_micros((self.now + self.servers[server].ahead).as_micros() as u64)
    }

    fn status(&self, number: usize) -> MemberStatus {
        let server = &self.servers[number];
        let uptime = match server.is_new {
            true => Duration::MAX,
            false => self.now - server.started,
        };
        let run = RunId::new(server.run.to_string());
        let mut status = MemberStatus::new(run, self.wall(number), uptime);
        status.durable = server.durable;
        status.member_record = server.member_record.clone();
        status
    }

    /// Answers the client's background requests until it has no more.
    pub(crate) fn settle(&mut self, client: &mut Membership) {
        for _ in 0..100 {
            let Some((member, request)) = client.poll_request() else {
                return;
            };
            let sent = self.ours();
            self.now += Duration::from_micros(100);
            let number = self.server(client, member.into());
            if self.servers[number].mute {
                continue;
            }
            let reply = self.reply(number, request);
            client.sample(self.ours(), member, sent, &self.sample(number));
            client.handle_reply(self.ours(), member, reply);
        }
        panic!("the records are never done");
    }

    fn reply(&mut self, number: usize, request: Request) -> Reply {
        match request {
            Request::Status if self.servers[number].refuses => {
                Reply::Failed(Error::new(ErrorKind::Refused, "no permission to run INFO"))
            }
            Request::Status => Reply::Status(Box::new(self.status(number))),
            Request::WriteMemberRecord(edit) => Reply::Recorded(self.write(number, *edit)),
            Request::RecordObservation(seen) => {
                let clock = self.wall(number);
                if let Some(record) = &mut self.servers[number].member_record {
                    observe(record, &seen, clock);
                }
                Reply::Recorded(true)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn sample(&self, number: usize) -> Sample {
        let server = &self.servers[number];
        let epoch: Option<Epoch> = server.member_record.as_ref().map(MemberRecord::epoch);
        Sample {
            clock: self.wall(number),
            incarnation: Incarnation::new(&RunId::new(server.run.to_string()), epoch.as_ref()),
        }
    }

    fn write(&mut self, number: usize, edit: MemberRecordEdit) -> bool {
        let clock = self.wall(number);
        let record = &mut self.servers[number].member_record;
        let is_expected = record.as_ref().map(MemberRecord::epoch) == edit.expected;
        if is_expected {
            *record = Some(edited(record.take(), edit, clock));
        }
        is_expected
    }

    /// The server starts again; its clients have to connect again.
    pub(crate) fn restart(&mut self, number: usize, keeps_data: bool) {
        let server = &mut self.servers[number];
        server.run += 1000;
        server.started = self.now;
        if !keeps_data {
            server.member_record = None;
        }
    }

    /// The server loses its data and keeps running.
    pub(crate) fn forget(&mut self, number: usize) {
        self.servers[number].member_record = None;
    }

    /// The others note that another server joined under the id of this one.
    fn admit_another(&mut self, number: usize) {
        let id = MemberId::new(format!("m{number}"));
        let clock = self.wall(number);
        for (other, server) in self.servers.iter_mut().enumerate() {
            if other != number
                && let Some(record) = &mut server.member_record
            {
                let later = DataGeneration::admitted(record.seen(&id), &RandomEntropy);
                observe(record, &[(id.clone(), later)], clock);
            }
        }
    }

    /// Swaps the data of this server and of one of another quorum.
    pub(crate) fn swap_data(&mut self, number: usize, other: &mut Self) {
        let (own, theirs) = (&mut self.servers[number], &mut other.servers[number]);
        std::mem::swap(&mut own.member_record, &mut theirs.member_record);
    }

    pub(crate) fn reconnect(&mut self, client: &mut Membership, member: usize) {
        client.disconnected(self.ours(), member.into(), unreachable("connection closed"));
        client.connected(self.ours(), member.into());
        self.settle(client);
    }

    /// Moves time ahead, and calls the client when its timers are due.
    pub(crate) fn pass(&mut self, client: &mut Membership, span: Duration) {
        let end = self.now + span;
        while let Some(due) = client.next_timeout().filter(|it| *it <= self.at(end)) {
            self.now += due.since(self.ours());
            client.handle_timeout(self.ours());
            self.settle(client);
        }
        self.now = self.now.max(end);
    }

    fn at(&self, time: Duration) -> BootInstant {
        BootInstant::from_nanos((time - self.behind).as_nanos() as u64)
    }

    /// An operation asks the member. Returns whether the answer counts.
    fn vote(&mut self, client: &mut Membership, member: usize) -> Result<(), UntrustedReason> {
        let sent = self.ours();
        self.now += Duration::from_micros(100);
        let sample = self.sample(self.server(client, member));
        client.sample(self.ours(), member.into(), sent, &sample);
        let verdict = client.counts(member.into(), sent, Some(&sample.incarnation));
        self.settle(client);
        verdict
    }

    fn votes(&mut self, client: &mut Membership) -> Vec<bool> {
        let members = 0..client.len();
        members.map(|it| self.vote(client, it).is_ok()).collect()
    }

    /// Whether an operation that begins now may ask the member.
    fn access(&mut self, client: &mut Membership, member: usize) -> Access {
        let began = self.ours();
        let access = client.access(self.ours(), member.into(), began);
        self.settle(client);
        match access {
            Access::Pending => client.access(self.ours(), member.into(), began),
            decided => decided,
        }
    }

    fn obstacle(&self, client: &Membership, member: usize) -> String {
        let obstacle = client.obstacle(self.ours(), member.into());
        obstacle.map(|it| it.to_string()).unwrap_or_default()
    }
}

fn events(client: &mut Membership) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(event) = client.poll_event() {
        events.push(match event {
            MemberEvent::NoVote { member, reason, .. } => format!("m{member} no vote: {reason}"),
            // Each member gets its first vote at some time.
            MemberEvent::HasVote { again: false, .. } => continue,
            MemberEvent::HasVote { member, .. } => format!("m{member} has a vote"),
            MemberEvent::Restarted { member } => format!("m{member} restarted"),
            MemberEvent::Fails { member, error } => format!("m{member} fails: {error}"),
            MemberEvent::Answers { member } => format!("m{member} answers"),
            MemberEvent::Suspended { span, .. } => format!("suspended for {span:.0?}"),
        });
    }
    events
}
