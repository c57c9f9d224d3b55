use crate::env::platform;

/// The process that a value belongs to. A forked child has a copy of the value, and is another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    /// Only for the first process of a PID namespace: its child can be the first of another one, and
    /// then both are pid 1. `None` as well where `/proc` does not tell.
    namespace: Option<(u64, u64)>,
}

impl Process {
    /// Returns the calling process.
    pub fn current() -> Self {
        platform::remember_pid();
        let pid = platform::pid();
        let namespace = (pid == 1).then(platform::pid_namespace).flatten();
        Self { pid, namespace }
    }

    /// Returns whether this is the calling process. On Linux, this needs no system call, except for pid 1.
    pub fn is_current(&self) -> bool {
        self.pid == platform::pid() && (self.pid != 1 || *self == Self::current())
    }
}
