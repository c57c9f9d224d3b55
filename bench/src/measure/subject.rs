/// A way to take a lock, for comparison with the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// As in the tables.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// `default`, `multi` (callers on all cores), or the delay between two attempts in milliseconds.
    pub(crate) settings: &'static str,
    pub(crate) role: Role,
    /// What it puts before the name of a lock.
    pub(crate) prefix: &'static str,
    nodes: Nodes,
}

/// What a subject is in a comparison: shown by its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Ours,
    /// Not a usable lock, but a bound of what is possible.
    Bound,
    Peer,
}

/// What runs a subject: a part of one of three programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// The worker of this program.
    Own(&'static str),
    Node(&'static str),
    Python(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    One,
    Several,
    Any,
}

/// The reference for the others.
pub(crate) const LEASEHOLD: &str = "leasehold";

/// The bound of what a library can reach in a hand-over on one server.
pub(crate) const BOUND: &str = "BLPOP, redis crate";

/// A list wakes its waiters, as with BLPOP. That list is a second key, so the lock's key has a prefix.
pub(crate) const PYTHON_REDIS_LOCK: Subject = Subject {
    prefix: "lock:",
    ..Subject::peer(
        "python-redis-lock",
        Program::Python("python-redis-lock"),
        "default",
        Nodes::One,
    )
};

impl Subject {
    /// A part of our worker that runs Leasehold, on any number of servers.
    pub(crate) const fn ours(
        name: &'static str,
        part: &'static str,
        settings: &'static str,
    ) -> Self {
        Self {
            role: Role::Ours,
            ..Self::peer(name, Program::Own(part), settings, Nodes::Any)
        }
    }

    pub(crate) const fn peer(
        name: &'static str,
        program: Program,
        settings: &'static str,
        nodes: Nodes,
    ) -> Self {
        Self {
            name,
            program,
            settings,
            role: Role::Peer,
            prefix: "",
            nodes,
        }
    }

    /// Makes this a bare bound instead of a peer.
    pub(crate) const fn as_bound(self) -> Self {
        Self {
            role: Role::Bound,
            ..self
        }
    }

    pub(crate) const fn prefixed(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    /// Whether it can use as many servers as `nodes`.
    pub(crate) fn fits(&self, nodes: usize) -> bool {
        match self.nodes {
            Nodes::One => nodes == 1,
            Nodes::Several => nodes > 1,
            Nodes::Any => true,
        }
    }

    /// The list of one token is there while the lock is free, not while it is held.
    pub(crate) fn key_is_free(&self) -> bool {
        matches!(self.program, Program::Own("bare" | "bare-crate"))
    }
}
