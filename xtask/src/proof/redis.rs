//! Bugs of one Redis server and of the quorum.

use super::bug::Bug;

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "redis-release-of-any-owner",
        suite: "redis",
        breaks: "a release does not compare the owner, and frees the lease of another client",
        file: "crates/leasehold-redis/src/scripts/free.lua",
        old: "if redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.call('EXISTS', KEYS[2]) == 0 then",
        new: "if redis.call('EXISTS', KEYS[2]) == 0 then",
    },
    Bug {
        name: "redis-short-reader-shortens-the-lock",
        suite: "redis",
        breaks: "the key that keeps writers out ends with the shortest lease of the readers, and not with the longest",
        file: "crates/leasehold-redis/src/scripts/parts/shared.lua",
        old: "call('ZRANGE', readers, -1, -1, 'WITHSCORES')[2]",
        new: "call('ZRANGE', readers, 0, 0, 'WITHSCORES')[2]",
    },
    Bug {
        name: "redis-break-opens-at-once",
        suite: "redis",
        breaks: "an operator breaks a lease at its end, and the lock opens at once while its holder works on",
        file: "crates/leasehold-redis/src/scripts/break.lua",
        old: "if ARGV[3] == '' then\n",
        new: "if ARGV[3] == '' and not member then\n",
    },
    Bug {
        name: "redis-forged-message-frees",
        suite: "redis",
        breaks: "a client releases the lease of the owner that a published message names",
        file: "crates/leasehold-quorum/src/acquire/answers.rs",
        old: "        if state.granted().is_some() {\n            return self.next();\n",
        new: "        if state.granted().is_some() {\n            let (lease, requeue) = (crate::messages::Lease::of(&self.lock_request), None);\n            net.given_back.push(crate::net::GivenBack {\n                member,\n                lease,\n                requeue,\n            });\n            return self.next();\n",
    },
    Bug {
        name: "redis-guard-outlives-its-lease",
        suite: "redis",
        breaks: "a guard counts as held after the end of its lease, until a renewal fails",
        file: "crates/leasehold/src/lease/validity.rs",
        old: "if self.lease_deadline.is_some_and(|end| now >= end) {",
        new: "if self.is_in_doubt() && self.lease_deadline.is_some_and(|end| now >= end) {",
    },
    Bug {
        name: "quorum-minority-counts",
        suite: "redis_of_three",
        breaks: "half of the members, rounded down, counts as a majority",
        file: "crates/leasehold-quorum/src/ballot/mod.rs",
        old: "    members / 2 + 1\n",
        new: "    (members / 2).max(1)\n",
    },
    Bug {
        name: "quorum-permits-add-up",
        suite: "redis_of_three",
        breaks: "grants of different permits count together as a majority",
        file: "crates/leasehold-quorum/src/acquire/deciding.rs",
        old: "granted.fence.is_some() && granted.slot == slot",
        new: "granted.fence.is_some() && granted.slot.is_some() == slot.is_some()",
    },
    Bug {
        name: "quorum-owner-is-reused",
        suite: "redis_of_three",
        breaks: "a wait keeps its owner after a release of it, which arrives late and frees the lease that the wait got since",
        file: "crates/leasehold-quorum/src/acquire/giving_back.rs",
        old: "        let next = Owner::at(former.client(), former.since(), &*net.entropy);\n",
        new: "        let next = former;\n",
    },
];
