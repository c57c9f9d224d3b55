//! The holders of a lock, and the node that a waiter waits for.
//!
//! The queue is what one server showed after it showed the own node. Such a view may be old, but it has every node
//! that was created before the own one and is not deleted. So "nothing before mine" is final: no node can get
//! a smaller number later. What barges is created later and has a greater number. It holds if a view that shows it
//! still shows a holder that it may join; then each view without that holder shows it.
#![deny(clippy::disallowed_types)]

use leasehold::Mode;
use leasehold::store::Permits;

use super::node::{Foreign, Kind, Node};

/// The nodes of a lock, in the order in which they were created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    nodes: Vec<Node>,
    /// The node of an exclusive holder that shares the lock now.
    downgraded: Option<String>,
}

/// For whom a decision is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) kind: Kind,
    /// The number of its node. `None` if it has none yet and asks what would be.
    pub(crate) number: Option<u32>,
}

/// What a request has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Take the lock.
    Take,
    /// Look whether this exclusive holder shares the lock.
    Ask(String),
    /// Remove this node: its lease was broken, and the time for which it kept others out is over.
    Remove(String),
    /// Wait for a change of this node.
    WaitFor(String),
    /// Wait for any change of the queue.
    WaitForAny,
    /// Give up: the permits that are held are of another number.
    Differs(Permits),
}

impl Queue {
    /// Reads the names of a folder. Fails if another library has locks there that would not see ours.
    pub(crate) fn read(names: &[String]) -> Result<Self, Foreign> {
        let mut nodes = Vec::new();
        for name in names {
            nodes.extend(Node::parse(name)?);
        }
        nodes.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        Ok(Self {
            nodes,
            downgraded: None,
        })
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns until when a broken lease keeps the lock closed at least, by the clock of the leader.
    pub(crate) fn closed_until(&self) -> Option<i64> {
        let ends = self.nodes.iter().filter_map(|node| match node.kind {
            Kind::Closed { until, .. } => Some(until),
            _ => None,
        });
        ends.min()
    }

    /// Notes that the node of an exclusive holder shares the lock.
    pub(crate) fn downgrade(&mut self, name: String) {
        self.downgraded = Some(name);
    }

    /// The mode of a node now.
    pub(crate) fn mode(&self, node: &Node) -> Mode {
        if self.downgraded.as_ref() == Some(&node.name) {
            return Mode::Shared;
        }
        node.kind.mode()
    }

    /// Returns the nodes that hold: the first one, those behind it that may join it, and those that barged.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &Node> {
        let mode = self.nodes.first().map(|first| self.mode(first));
        let limit = match mode {
            Some(Mode::Shared) => usize::MAX,
            Some(Mode::Permit(of)) => of.get() as usize,
            Some(Mode::Exclusive) => 1,
            None => 0,
        };
        let joined = self
            .nodes
            .iter()
            .take_while(move |node| Some(self.mode(node)) == mode);
        let joined = joined.take(limit).count();
        let (first, rest) = self.nodes.split_at(joined);
        first
            .iter()
            .chain(rest.iter().filter(|node| node.kind.barges()))
    }

    /// Returns the nodes that wait, in the order of service.
    pub(crate) fn waiters(&self) -> impl Iterator<Item = &Node> {
        let holding: Vec<_> = self.holders().map(|node| &node.name).collect();
        self.nodes
            .iter()
            .filter(move |node| !holding.contains(&&node.name))
    }

    /// Whether the queue has this node.
    pub(crate) fn has(&self, node: &Node) -> bool {
        let from = self
            .nodes
            .partition_point(|other| other.number < node.number);
        let same = self.nodes[from..].iter();
        same.take_while(|other| other.number == node.number)
            .any(|other| other.name == node.name)
    }

    /// Returns how many nodes wait before this one; `None` if it holds.
    pub(crate) fn position(&self, node: &Node) -> Option<usize> {
        self.waiters().position(|other| other.name == node.name)
    }

    /// Decides for `reader` at this time of the leader's clock; `None` if that is unknown. If the time is past the end of a
    /// broken lease, it must be a fresh answer.
    pub(crate) fn decide(&self, reader: Reader, now: Option<i64>) -> Decision {
        let is_over = |node: &&Node| matches!(node.kind, Kind::Closed { until, .. } if now.is_some_and(|now| until < now));
        if let Some(over) = self.nodes.iter().find(is_over) {
            return Decision::Remove(over.name.clone());
        }
        let before = self
            .nodes
            .partition_point(|node| reader.number.is_none_or(|own| node.number < own));
        let (before, behind) = self.nodes.split_at(before);
        if reader.kind.barges() {
            return self.decide_barging(reader.kind, before);
        }
        let mut barged = behind
            .iter()
            .filter(|node| node.kind.barges() && Some(node.number) != reader.number);
        if reader.kind.mode() == Mode::Exclusive {
            return match before.last().or_else(|| barged.next_back()) {
                None => Decision::Take,
                Some(last) => wait_for(last),
            };
        }
        let ahead: Vec<&Node> = before.iter().chain(barged).collect();
        match reader.kind.mode() {
            Mode::Permit(of) => self.decide_permit(of, &ahead, before),
            _ => self.decide_shared(&ahead),
        }
    }

    fn decide_shared(&self, ahead: &[&Node]) -> Decision {
        let mut others = ahead.iter().filter(|node| self.mode(node) != Mode::Shared);
        match (others.next(), others.next_back()) {
            (None, _) => Decision::Take,
            (Some(only), None) => self.ask_or_wait(only),
            (Some(_), Some(last)) => wait_for(last),
        }
    }

    /// An exclusive holder may share the lock, which its name does not say.
    fn ask_or_wait(&self, node: &Node) -> Decision {
        let is_first = self.nodes.first() == Some(node);
        if is_first && node.kind == Kind::Exclusive && node.owner.is_some() {
            return Decision::Ask(node.name.clone());
        }
        wait_for(node)
    }

    fn decide_permit(&self, of: Permits, ahead: &[&Node], before: &[Node]) -> Decision {
        let mine = Mode::Permit(of);
        let differing = |node: &Node| match self.mode(node) {
            Mode::Permit(others) if others != of && ahead.contains(&node) => Some(others),
            _ => None,
        };
        if let Some(others) = self.holders().find_map(differing) {
            return Decision::Differs(others);
        }
        if let Some(last) = ahead.iter().rfind(|node| self.mode(node) != mine) {
            return wait_for(last);
        }
        let limit = of.get() as usize;
        match (ahead.len().cmp(&limit), before.last()) {
            (std::cmp::Ordering::Less, _) => Decision::Take,
            // Those that hold leave in any order.
            (std::cmp::Ordering::Equal, _) | (_, None) => Decision::WaitForAny,
            // Its node changes when it takes the lock, too.
            (std::cmp::Ordering::Greater, Some(last)) => wait_for(last),
        }
    }

    /// A request that barges joins holders, past all that wait. It does not go past a client of another library, which
    /// would not see it.
    fn decide_barging(&self, kind: Kind, before: &[Node]) -> Decision {
        let Some(first) = before.first() else {
            return Decision::Take;
        };
        // What barged earlier holds, even where the first node is a waiter by now.
        let differs = |node: &Node| node.kind.barges() && node.kind.mode() != kind.mode();
        if before
            .iter()
            .any(|node| node.owner.is_none() || differs(node))
        {
            return Decision::WaitForAny;
        }
        let holding: Vec<&Node> = self
            .holders()
            .filter(|node| before.contains(node))
            .collect();
        match (kind.mode(), self.mode(first)) {
            (Mode::Shared, Mode::Shared) => Decision::Take,
            (Mode::Permit(mine), Mode::Permit(theirs)) if mine != theirs => {
                Decision::Differs(theirs)
            }
            (Mode::Permit(of), Mode::Permit(_)) if holding.len() < of.get() as usize => {
                Decision::Take
            }
            (Mode::Shared, Mode::Exclusive) if first.kind == Kind::Exclusive => {
                Decision::Ask(first.name.clone())
            }
            _ => Decision::WaitForAny,
        }
    }
}

fn wait_for(node: &Node) -> Decision {
    Decision::WaitFor(node.name.clone())
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
