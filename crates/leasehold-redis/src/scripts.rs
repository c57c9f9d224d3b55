use std::sync::LazyLock;

use crate::connection::{Rights, Script};

macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("lua/lease.lua"), include_str!($file))))
    };
}

pub(crate) static ACQUIRE_EXCLUSIVE: LazyLock<Script> = script!("lua/acquire_exclusive.lua");
pub(crate) static ACQUIRE_SHARED: LazyLock<Script> = script!("lua/acquire_shared.lua");
pub(crate) static RENEW: LazyLock<Script> = script!("lua/renew.lua");
pub(crate) static RELEASE: LazyLock<Script> = script!("lua/release.lua");
pub(crate) static SEAL: LazyLock<Script> = script!("lua/seal.lua");

/// What a user must be allowed for the plain attempt, and for any of the scripts: the library's
/// front page has the same list as one `ACL SETUSER` line, and a test holds them together.
pub(crate) const RIGHTS: Rights = Rights(
    "+set +get +del +exists +pttl +pexpire +pexpireat +type +zadd +zincrby +zscore +zrange +zrem \
     +zremrangebyscore +hset +hgetall +time +evalsha +script|load",
);
