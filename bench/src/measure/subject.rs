/// A way to take a lock, for comparison with the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// As in the tables.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// `default`, `multi` (callers on all cores), or the delay between two attempts in milliseconds.
    pub(crate) settings: &'static str,
    /// What it puts before the name of a lock.
    pub(crate) prefix: &'static str,
    /// Whether it can use several servers.
    pub(crate) is_quorum: bool,
}

/// What runs a subject: a part of one of four programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// A part of the worker of this program: `STORE/PART`, or a peer that needs Redis.
    Own(&'static str),
    Java(&'static str),
    Node(&'static str),
    Python(&'static str),
}

pub(crate) const LEASEHOLD: &str = "leasehold";

pub(crate) const NODE_REDLOCK: Subject =
    Subject::new("node-redlock", Program::Node("redlock"), "default");

pub(crate) const REDIS_PY: Subject =
    Subject::new("redis-py", Program::Python("redis-py"), "default").on_one_server();

/// It notifies its waiters by a list, with BLPOP. That list is a second key, so the lock's key has a prefix.
pub(crate) const PYTHON_REDIS_LOCK: Subject = Subject {
    prefix: "lock:",
    ..Subject::new(
        "python-redis-lock",
        Program::Python("python-redis-lock"),
        "default",
    )
    .on_one_server()
};

impl Subject {
    pub(crate) const fn new(name: &'static str, program: Program, settings: &'static str) -> Self {
        Self {
            name,
            program,
            settings,
            prefix: "",
            is_quorum: true,
        }
    }

    pub(crate) const fn on_one_server(self) -> Self {
        Self {
            is_quorum: false,
            ..self
        }
    }

    /// The list of one token is there while the lock is free, not while it is held.
    pub(crate) fn key_is_free(&self) -> bool {
        self.program == Program::Own("crate-list")
    }
}
