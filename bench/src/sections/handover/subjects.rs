use crate::measure::subject::Nodes::{Any, One, Several};
use crate::measure::subject::Program::{Node, Own, Python};
use crate::measure::subject::{BOUND, LEASEHOLD, Subject};
use crate::report::charts::Role::{Bound, Ours, Peer};

/// A separate search found the delay that makes each library hand over fastest. A shorter delay only
/// costs more.
const SUBJECTS: [Subject; 16] = [
    Subject::new(Bound, "BLPOP, bare sockets", Own("bare"), "default", One),
    Subject::new(
        Bound,
        "SET, bare sockets",
        Own("bare-quorum"),
        "default",
        Any,
    ),
    Subject::new(Bound, BOUND, Own("bare-crate"), "default", One),
    Subject::new(
        Bound,
        "BLPOP, redis crate, all cores",
        Own("bare-crate"),
        "multi",
        One,
    ),
    Subject::new(Ours, LEASEHOLD, Own("leasehold"), "default", Any),
    Subject::new(Ours, "leasehold, all cores", Own("leasehold"), "multi", Any),
    Subject::new(
        Ours,
        "leasehold, a client each",
        Own("leasehold-each"),
        "default",
        Any,
    ),
    Subject::new(
        Ours,
        "leasehold, a client each, all cores",
        Own("leasehold-each"),
        "multi",
        Any,
    ),
    Subject::new(Peer, "rslock", Own("rslock"), "default", Any),
    Subject::new(Peer, "rslock, 2 ms", Own("rslock"), "2", One),
    Subject::new(Peer, "rslock, 4 ms", Own("rslock"), "4", Several),
    Subject::new(Peer, "node-redlock", Node("redlock"), "default", Any),
    Subject::new(Peer, "node-redlock, 2 ms", Node("redlock"), "2", Any),
    Subject::new(Peer, "redis-py", Python("redis-py"), "default", One),
    Subject::new(Peer, "redis-py, 2 ms", Python("redis-py"), "2", One),
    // A list wakes its waiters, as with BLPOP. That list is a second key, so the lock's key has a prefix.
    Subject::new(
        Peer,
        "python-redis-lock",
        Python("python-redis-lock"),
        "default",
        One,
    )
    .prefixed("lock:"),
];

/// Returns the subjects that can use `nodes` servers.
pub(crate) fn all(nodes: usize) -> impl Iterator<Item = Subject> {
    SUBJECTS
        .into_iter()
        .filter(move |subject| subject.fits(nodes))
}

/// Whether the subject is also measured with this number of waiters: the best one for each way to wait.
/// With 256 threads of Python, no thread gets the lock in time.
pub(super) fn is_drawn(subject: &Subject, waiters: usize) -> bool {
    match subject.program {
        Python(part) => part == "python-redis-lock" && waiters <= 64,
        Node(_) => false,
        Own(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leasehold_is_always_there_and_names_are_given_once() {
        for nodes in [1, 3, 5] {
            let mut names: Vec<&str> = all(nodes).map(|subject| subject.name).collect();
            assert!(names.contains(&LEASEHOLD));
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        assert!(all(5).all(|subject| !subject.key_is_free()));
    }
}
