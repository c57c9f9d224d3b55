//! Takes a lock: creates a node in its queue, waits until the nodes before it are gone, and draws a fence.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::store::{AcquireError, Busy, Grant, LockRequest, Progress};
use leasehold::{Error, ErrorKind, Fence};

use super::looks::{Counter, Look, Seen};
use super::node_data::NodeData;
use super::questions::{data_of, find, term, watch_end};
use super::records::wall;
use super::refusal::refused;
use super::session::{LocksInner, Place};
use super::wakeup::Wakeup;
use crate::client::{self, Change, Code, Connection, LeaderClock, Lifetime, Op};
use crate::queue::{Decision, Kind, Node, Paths, Queue, Reader, fences};

/// One call of `acquire`.
struct Acquire<'a> {
    locks: &'a LocksInner,
    request: &'a Arc<LockRequest>,
    progress: &'a Progress<'a>,
    paths: Paths,
    kind: Kind,
    /// The node in the queue.
    node: Option<Node>,
    /// Whether the server may have a node whose name is unknown.
    may_have_node: bool,
}

/// What a step of an attempt leads to.
enum Step {
    Granted(Grant),
    /// Another owner is ahead; wait for this.
    Behind(Busy, Wakeup),
    /// Something changed meanwhile.
    Again,
}

impl LocksInner {
    pub(super) async fn acquire(
        &self,
        request: &Arc<LockRequest>,
        progress: &Progress<'_>,
    ) -> Result<Grant, AcquireError> {
        let mut acquire = Acquire {
            locks: self,
            request,
            progress,
            paths: self.paths(&request.key),
            kind: Kind::of(request.mode, request.barges),
            node: None,
            may_have_node: false,
        };
        acquire.run().await
    }
}

impl Acquire<'_> {
    async fn run(&mut self) -> Result<Grant, AcquireError> {
        loop {
            let connection = match self.locks.connection_for(self.request).await {
                Ok(connection) => connection,
                Err(error) => {
                    self.survive(error)?;
                    continue;
                }
            };
            match self.step(&connection).await {
                Ok(Step::Granted(grant)) => return Ok(grant),
                Ok(Step::Again) => {}
                Ok(Step::Behind(busy, _)) if !self.request.waits => {
                    self.leave(&connection).await?;
                    return Err(AcquireError::Busy(busy));
                }
                Ok(Step::Behind(busy, wakeup)) => {
                    self.progress.busy(busy);
                    if self.node.is_some() && !self.request.is_queued() {
                        // Another one was faster.
                        self.leave(&connection).await?;
                        continue;
                    }
                    wakeup.wait(&*self.locks.context.env().clock).await;
                }
                Err(error) if error.kind() == ErrorKind::Unreachable => {
                    self.survive(error)?;
                    if connection.is_open() {
                        // The server answers, and is not ready.
                        self.locks.context.env().poll_pause().await;
                    }
                }
                Err(error) => {
                    let has_left = self.leave(&connection).await.is_ok();
                    return Err(match has_left {
                        true => error.without_effect(),
                        false => error.with_unknown_effect(),
                    }
                    .into());
                }
            }
        }
    }

    /// Reports an outage, and continues if the place in the queue may still be there.
    fn survive(&mut self, error: Error) -> Result<(), AcquireError> {
        let place = self.locks.place(self.request.owner);
        let Some(place) = place else {
            return Err(error.without_effect().into());
        };
        let lives = self.locks.server.number() == Some(place.session);
        if !self.request.waits || !lives {
            return Err(error.with_unknown_effect().into());
        }
        self.progress.unavailable(error);
        Ok(())
    }

    /// Makes one attempt with what the server shows now.
    async fn step(&mut self, connection: &Arc<Connection>) -> Result<Step, Error> {
        if let Some(place) = self.locks.place(self.request.owner)
            && place.session != connection.session
        {
            let text = "the session ended, and with it the place in the queue";
            return Err(Error::new(ErrorKind::Unreachable, text).with_unknown_effect());
        }
        if self.may_have_node {
            self.find_node(connection).await?;
        }
        if self.node.is_none() && !self.request.is_queued() {
            // It has no place, so it first looks whether the lock is free.
            if let Some(step) = self.look(connection).await? {
                return Ok(step);
            }
        }
        let seen = match &self.node {
            None => match self.enter(connection).await? {
                Some(seen) => seen,
                None => return Ok(Step::Again),
            },
            Some(_) => self.look_again(connection).await?,
        };
        let Some(node) = self.node.clone() else {
            return Ok(Step::Again);
        };
        if !seen.queue.has(&node) {
            // Somebody deleted it.
            (self.node, self.may_have_node) = (None, true);
            return Ok(Step::Again);
        }
        let reader = Reader {
            kind: self.kind,
            number: Some(node.number),
        };
        match self.decide(connection, &seen.queue, reader).await? {
            None => self.take(connection, &node, seen.counter).await,
            Some(step) => Ok(step),
        }
    }

    /// Looks at the queue. `None` if the lock seems to be free.
    async fn look(&mut self, connection: &Connection) -> Result<Option<Step>, Error> {
        let change = self.next_change(connection, &self.paths.lock);
        let seen = self.see(connection, self.request.waits).await?;
        let reader = Reader {
            kind: self.kind,
            number: None,
        };
        let step = self.decide(connection, &seen.queue, reader).await?;
        Ok(step.map(|step| match step {
            Step::Behind(busy, wakeup) => Step::Behind(busy, wakeup.or(change)),
            other => other,
        }))
    }

    /// Creates the node, and returns what it finds. `None` if the folder was missing.
    async fn enter(&mut self, connection: &Arc<Connection>) -> Result<Option<Arc<Seen>>, Error> {
        let prefix = format!(
            "{}/{}",
            self.paths.lock,
            Node::prefix(self.request.owner, self.kind)
        );
        let data = NodeData::of(self.request, connection.timeout).to_bytes()?;
        let place = Place {
            session: connection.session,
            node: None,
            is_granted: false,
            is_downgraded: false,
        };
        self.locks.note(self.request.owner, place);
        if self.locks.server.number() != Some(connection.session) {
            // The session was closed while it had no place.
            self.gone();
            return Ok(None);
        }
        self.may_have_node = true;
        let op = Op::Create(
            &prefix,
            &data,
            Lifetime::EphemeralSequential,
            self.locks.access(),
        );
        let (locks, paths) = (self.locks, self.paths.clone());
        let viewer = locks.looks.join(connection, &paths);
        let mut batch = connection.batch();
        let created = batch.add(&op, client::created);
        let look = viewer.begin(batch);
        let path = match created.answer().await? {
            Ok(answer) => {
                connection.learn_leader_clock(answer.value.1);
                answer.value.0
            }
            Err(Code::NO_NODE) => {
                self.gone();
                let folder = &self.paths.lock;
                self.locks
                    .ensure_folder(connection, folder, Lifetime::Container)
                    .await?;
                return Ok(None);
            }
            Err(code) => {
                self.gone();
                return Err(refused(&self.paths.lock, code));
            }
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        self.found(name)?;
        viewer.finish(look).await.map(Some)
    }

    /// Notes that the owner has nothing at the server.
    fn gone(&mut self) {
        (self.node, self.may_have_node) = (None, false);
        self.locks.forget(self.request.owner);
    }

    /// Notes the name of the own node.
    fn found(&mut self, name: &str) -> Result<(), Error> {
        let node = Node::parse(name).ok().flatten().ok_or_else(|| {
            let text =
                format!("the server named a node {name:?}; are 2^31 numbers of this lock used up?");
            Error::new(ErrorKind::InvalidResponse, text)
        })?;
        self.locks.change(self.request.owner, |place| {
            place.node = Some(node.name.clone());
        });
        (self.node, self.may_have_node) = (Some(node), false);
        Ok(())
    }

    /// Finds out whether a node was created whose answer was lost. The session has moved meanwhile, so earlier
    /// requests have no late effect.
    async fn find_node(&mut self, connection: &Connection) -> Result<(), Error> {
        let owner = self.request.owner;
        match find(connection, &self.paths.lock, owner, false).await? {
            Some(name) => self.found(&name),
            None => {
                self.gone();
                Ok(())
            }
        }
    }

    /// Looks at the queue in which the request has a node. The server sees all that came before the node.
    async fn look_again(&self, connection: &Arc<Connection>) -> Result<Arc<Seen>, Error> {
        let viewer = self.locks.looks.join(connection, &self.paths);
        viewer.finish(viewer.begin(connection.batch())).await
    }

    /// Looks at the queue, perhaps with a watch.
    async fn see(&self, connection: &Connection, watch: bool) -> Result<Arc<Seen>, Error> {
        let mut batch = connection.batch();
        if self.node.is_none() {
            // The server may not have heard of a release yet.
            batch.sync();
        }
        let look = Look::ask(&mut batch, &self.paths, watch);
        batch.send();
        look.read(&self.paths).await
    }

    /// Decides what to do; `None` to take the lock.
    async fn decide(
        &self,
        connection: &Connection,
        queue: &Queue,
        reader: Reader,
    ) -> Result<Option<Step>, Error> {
        let now = match queue.closed_until() {
            Some(until) => Some(self.locks.time_for(connection, until).await?),
            None => None,
        };
        let mut queue = Cow::Borrowed(queue);
        loop {
            match queue.decide(reader, now) {
                Decision::Take => return Ok(None),
                Decision::Remove(node) => {
                    self.remove(connection, &node).await?;
                    return Ok(Some(Step::Again));
                }
                Decision::Differs(others) => return Err(self.differs(others)),
                Decision::WaitForAny => return self.behind_any(connection, &queue).await.map(Some),
                Decision::WaitFor(node) => {
                    return self.behind(connection, &queue, &node).await.map(Some);
                }
                Decision::Ask(node) => {
                    let path = format!("{}/{node}", self.paths.lock);
                    let change = self.next_change(connection, &path);
                    let Some(data) = data_of(connection, &path, self.request.waits).await? else {
                        return Ok(Some(Step::Again));
                    };
                    if !NodeData::read(&data).is_some_and(|data| data.shared) {
                        return Ok(Some(self.wait_behind(connection, &queue, change)));
                    }
                    queue.to_mut().downgrade(node);
                }
            }
        }
    }

    /// Returns the next change of `path`; `None` if the request does not wait.
    fn next_change(&self, connection: &Connection, path: &str) -> Option<Change> {
        self.request.waits.then(|| connection.next_change(path))
    }

    /// Waits for any change of the queue, unless it has changed already.
    async fn behind_any(&self, connection: &Connection, queue: &Queue) -> Result<Step, Error> {
        let Some(change) = self.next_change(connection, &self.paths.lock) else {
            return Ok(self.wait_behind(connection, queue, None));
        };
        let now = self.see(connection, true).await?;
        if now.queue.nodes() != queue.nodes() {
            return Ok(Step::Again);
        }
        Ok(self.wait_behind(connection, queue, Some(change)))
    }

    /// Waits for a change of `node`, unless it is gone already.
    async fn behind(
        &self,
        connection: &Connection,
        queue: &Queue,
        node: &str,
    ) -> Result<Step, Error> {
        let path = format!("{}/{node}", self.paths.lock);
        let Some(change) = self.next_change(connection, &path) else {
            return Ok(self.wait_behind(connection, queue, None));
        };
        let has_passed = match self.kind {
            // Only its end matters.
            Kind::Exclusive | Kind::Closed { .. } => !watch_end(connection, &path).await?,
            Kind::Shared { .. } | Kind::Permit { .. } => {
                let data = data_of(connection, &path, true).await?;
                data.is_none_or(|data| self.has_moved_on(node, &data))
            }
        };
        if has_passed {
            return Ok(Step::Again);
        }
        Ok(self.wait_behind(connection, queue, Some(change)))
    }

    /// Whether the owner of `node` got the lock or shared it after the queue was read. The change to wait for has passed then, and
    /// the next one may be its end.
    fn has_moved_on(&self, node: &str, data: &[u8]) -> bool {
        let node = Node::parse(node).ok().flatten();
        let (Some(node), Some(data)) = (node, NodeData::read(data)) else {
            return false;
        };
        match self.kind {
            Kind::Exclusive | Kind::Closed { .. } => false,
            Kind::Shared { .. } => data.shared,
            Kind::Permit { .. } => node.kind.mode() == self.kind.mode() && data.fence().is_some(),
        }
    }

    fn wait_behind(&self, connection: &Connection, queue: &Queue, change: Option<Change>) -> Step {
        let closed = queue.closed_until().zip(connection.about_leader_time());
        let at_most = closed.map(|(until, now)| {
            let left = u64::try_from(until.saturating_sub(now)).unwrap_or_default();
            Duration::from_millis(left + 1).min(LeaderClock::RECENT)
        });
        Step::Behind(self.busy(queue), Wakeup::new(change, at_most))
    }

    fn busy(&self, queue: &Queue) -> Busy {
        let holder = queue.holders().next().and_then(|node| node.owner);
        let mut busy = Busy::by(holder);
        let position = self.node.as_ref().and_then(|node| queue.position(node));
        busy.position = position.and_then(|ahead| u64::try_from(ahead).ok());
        busy
    }

    fn differs(&self, others: leasehold::store::Permits) -> Error {
        let mine = match self.kind {
            Kind::Permit { of, .. } => of.get(),
            _ => 1,
        };
        Error::permits_differ(others, mine)
    }

    /// Removes a closed node whose time is over. Another client may have done it.
    async fn remove(&self, connection: &Connection, node: &str) -> Result<(), Error> {
        let path = format!("{}/{node}", self.paths.lock);
        match connection.delete(&path).await? {
            Ok(_) | Err(Code::NO_NODE) => Ok(()),
            Err(code) => Err(refused(&path, code)),
        }
    }

    /// Returns the time that the fence must exceed.
    async fn proposal(&self, connection: &Connection) -> Result<WallTime, Error> {
        let own = self.locks.context.env().clock.wall();
        let proposal = self.request.proposal.max(own);
        let known = connection.about_leader_time();
        if known.is_some_and(|now| proposal.check(Some(wall(now))).is_ok()) {
            return Ok(proposal);
        }
        // Perhaps the leader's clock was set right meanwhile.
        let now = self.locks.ask_time(connection).await?;
        proposal.check(Some(wall(now))).map(|()| proposal)
    }

    /// Draws a fence. The transaction succeeds only if the own node is still there.
    async fn take(
        &mut self,
        connection: &Connection,
        node: &Node,
        counter: Counter,
    ) -> Result<Step, Error> {
        let proposal = self.proposal(connection).await?;
        let last = counter.map_or(0, |(last, _)| last);
        let fence = Fence::after(Fence::new(last), proposal)?;
        let path = format!("{}/{}", self.paths.lock, node.name);
        let data = NodeData::of(self.request, connection.timeout)
            .granted(fence)
            .to_bytes()?;
        let text = fence.to_string();
        let draw = match counter {
            Some((_, version)) => Op::SetData(&self.paths.fence, text.as_bytes(), version),
            None => {
                let access = self.locks.access();
                Op::Create(
                    &self.paths.fence,
                    text.as_bytes(),
                    Lifetime::Persistent,
                    access,
                )
            }
        };
        let parts = vec![Op::SetData(&path, &data, client::ANY), draw];
        match connection.transact(parts).await? {
            Ok(answer) => {
                self.locks
                    .change(self.request.owner, |place| place.is_granted = true);
                let term = term(connection, self.request.ttl, &answer);
                Ok(Step::Granted(Grant::new(fence, term)))
            }
            Err((0, Code::NO_NODE)) => {
                (self.node, self.may_have_node) = (None, true);
                Ok(Step::Again)
            }
            // Another grant was faster, perhaps of another lock with the same counter.
            Err((1, Code::BAD_VERSION | Code::NODE_EXISTS)) => Ok(Step::Again),
            Err((1, Code::NO_NODE)) => {
                let folder = fences(self.locks.root());
                self.locks
                    .ensure_folder(connection, &folder, Lifetime::Persistent)
                    .await?;
                Ok(Step::Again)
            }
            Err((_, code)) => Err(refused(&self.paths.fence, code)),
        }
    }

    /// Leaves the queue. After an error, the node may still be there.
    async fn leave(&mut self, connection: &Connection) -> Result<(), Error> {
        let left = self.try_leave(connection).await;
        left.map_err(Error::with_unknown_effect)
    }

    async fn try_leave(&mut self, connection: &Connection) -> Result<(), Error> {
        if self.may_have_node {
            self.find_node(connection).await?;
        }
        let Some(node) = &self.node else {
            return Ok(());
        };
        let path = format!("{}/{}", self.paths.lock, node.name);
        match connection.delete(&path).await? {
            Ok(_) | Err(Code::NO_NODE) => {
                self.gone();
                Ok(())
            }
            Err(code) => Err(refused(&path, code)),
        }
    }
}
