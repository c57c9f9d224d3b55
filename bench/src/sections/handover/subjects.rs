use crate::measure::subject::Nodes::{Any, One, Several};
use crate::measure::subject::Program::{Node, Own, Python};
use crate::measure::subject::{BOUND, LEASEHOLD, PYTHON_REDIS_LOCK, Subject};

/// A separate search found the delay that makes each library hand over fastest. A shorter delay only
/// costs more.
const SUBJECTS: [Subject; 16] = [
    Subject::peer("BLPOP, bare sockets", Own("bare"), "default", One).as_bound(),
    Subject::peer("SET, bare sockets", Own("bare-quorum"), "default", Any).as_bound(),
    Subject::peer(BOUND, Own("bare-crate"), "default", One).as_bound(),
    Subject::peer(BOUND_ON_ALL_CORES, Own("bare-crate"), "multi", One).as_bound(),
    Subject::ours(LEASEHOLD, "leasehold", "default"),
    Subject::ours("leasehold, all cores", "leasehold", "multi"),
    Subject::ours("leasehold, a client each", "leasehold-each", "default"),
    Subject::ours(EACH_ON_ALL_CORES, "leasehold-each", "multi"),
    Subject::peer("rslock", Own("rslock"), "default", Any),
    Subject::peer("rslock, 2 ms", Own("rslock"), "2", One),
    Subject::peer("rslock, 4 ms", Own("rslock"), "4", Several),
    Subject::peer("node-redlock", Node("redlock"), "default", Any),
    Subject::peer("node-redlock, 2 ms", Node("redlock"), "2", Any),
    Subject::peer("redis-py", Python("redis-py"), "default", One),
    Subject::peer("redis-py, 2 ms", Python("redis-py"), "2", One),
    PYTHON_REDIS_LOCK,
];
const BOUND_ON_ALL_CORES: &str = "BLPOP, redis crate, all cores";
const EACH_ON_ALL_CORES: &str = "leasehold, a client each, all cores";

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
