//! Takes a lock: creates a node in its queue, waits until the nodes before it are gone, and draws a fence.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use leasehold::store::{AcquireError, Busy, Grant, LockRequest, Progress};
use leasehold::{Error, ErrorKind};

use super::attempt::{Acquire, Step};
use super::draw::Drawn;
use super::looks::{Look, Seen};
use super::node_data::NodeData;
use super::questions::{data_of, find, watch_end};
use super::refusal::refused;
use super::session::{LocksInner, Place};
use super::wakeup::Wakeup;
use crate::client::{self, Change, Code, Connection, LeaderClock, Lifetime, Op};
use crate::queue::{Decision, Kind, Node, Queue, Reader};

/// What a request with a node finds, and the fence that it drew in advance.
type Found = (Arc<Seen>, Option<Drawn>);

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
            is_notified: false,
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
                    self.is_notified = connection.is_open();
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
        let (seen, drawn) = match self.node.clone() {
            None => match self.enter(connection).await? {
                Some(found) => found,
                None => return Ok(Step::Again),
            },
            Some(node) => self.look_again(connection, &node).await?,
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
            None => match drawn.and_then(|drawn| drawn.if_last(seen.counter)) {
                Some(grant) => Ok(self.granted(grant)),
                None => self.take(connection, &node, seen.counter).await,
            },
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

    /// Creates the node, and returns what it finds. `None` if the folder was missing, or another client drew a fence.
    async fn enter(&mut self, connection: &Arc<Connection>) -> Result<Option<Found>, Error> {
        let prefix = format!(
            "{}/{}",
            self.paths.lock,
            Node::prefix(self.request.owner, self.kind)
        );
        let place = Place {
            session: connection.session,
            node: None,
            is_granted: false,
            is_downgraded: false,
        };
        let is_first = self.locks.note(self.request, place);
        if self.locks.server.number() != Some(connection.session) {
            // The session was closed while it had no place.
            self.gone();
            return Ok(None);
        }
        self.may_have_node = true;
        // If another caller of this client has a place, the lock is not free.
        let draw = if is_first {
            self.draw_ahead(connection)
        } else {
            None
        };
        let data = self.data(connection, draw.as_ref())?;
        let create = Op::Create(
            &prefix,
            &data,
            Lifetime::EphemeralSequential,
            self.locks.access(),
        );
        let (locks, paths) = (self.locks, self.paths.clone());
        let viewer = locks.looks.join(connection, &paths);
        let mut batch = connection.batch();
        let created = match &draw {
            Some(draw) => batch.add(
                &Op::Multi(vec![create, self.draw_op(draw)]),
                client::transaction,
            ),
            None => batch.add(&create, client::creation),
        };
        let look = viewer.begin(batch);
        let created = match client::committed(created.answer().await?) {
            Ok(created) => created,
            Err(refusal) => {
                self.gone();
                return self.not_created(connection, refusal).await.map(|()| None);
            }
        };
        let (path, written) = (&created.value.created, created.value.written);
        written
            .into_iter()
            .for_each(|stat| connection.learn_leader_clock(stat));
        let name = path.as_deref().and_then(|path| path.rsplit('/').next());
        self.found(name.unwrap_or_default())?;
        let drawn = draw.map(|draw| self.drawn(connection, &draw, &created));
        Ok(Some((viewer.finish(look).await?, drawn)))
    }

    /// Prepares for another attempt to create the node, if the next one may succeed.
    async fn not_created(
        &self,
        connection: &Connection,
        (part, code): (usize, Code),
    ) -> Result<(), Error> {
        self.locks.counters.forget(&self.paths.fence);
        match (part, code) {
            (0, Code::NO_NODE) => {
                let folder = &self.paths.lock;
                let ensured = self
                    .locks
                    .ensure_folder(connection, folder, Lifetime::Container);
                ensured.await
            }
            (1, Code::BAD_VERSION | Code::NO_NODE) => Ok(()),
            (1, code) => Err(refused(&self.paths.fence, code)),
            (_, code) => Err(refused(&self.paths.lock, code)),
        }
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
    async fn look_again(
        &mut self,
        connection: &Arc<Connection>,
        node: &Node,
    ) -> Result<Found, Error> {
        let viewer = self.locks.looks.join(connection, &self.paths);
        let mut batch = connection.batch();
        let draw = match std::mem::take(&mut self.is_notified) {
            true => self.draw_ahead(connection),
            false => None,
        };
        let drawing = match &draw {
            Some(draw) => Some(self.add_draw(connection, &mut batch, node, draw)?),
            None => None,
        };
        let look = viewer.begin(batch);
        let mut drawn = None;
        if let Some((draw, drawing)) = draw.zip(drawing) {
            match client::committed(drawing.answer().await?) {
                Ok(answer) => drawn = Some(self.drawn(connection, &draw, &answer)),
                // The look shows what happened.
                Err(_) => self.locks.counters.forget(&self.paths.fence),
            }
        }
        Ok((viewer.finish(look).await?, drawn))
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
