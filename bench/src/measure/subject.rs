use crate::report::charts::Role;

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

impl Subject {
    pub(crate) const fn new(
        role: Role,
        name: &'static str,
        program: Program,
        settings: &'static str,
        nodes: Nodes,
    ) -> Self {
        Self {
            name,
            program,
            settings,
            role,
            prefix: "",
            nodes,
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
