use std::sync::LazyLock;

use crate::connection::{Rights, Script};

macro_rules! script {
    ($($file:literal),+) => {
        LazyLock::new(|| Script::new(concat!($(include_str!($file)),+)))
    };
}

pub(crate) static ACQUIRE_EXCLUSIVE: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/acquire_exclusive.lua"
);
pub(crate) static ACQUIRE_SHARED: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/readers.lua",
    "lua/acquire_shared.lua"
);
pub(crate) static ACQUIRE_PERMIT: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/readers.lua",
    "lua/permits.lua",
    "lua/acquire_permit.lua"
);
pub(crate) static RENEW: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/readers.lua",
    "lua/renew.lua"
);
pub(crate) static SEAL: LazyLock<Script> =
    script!("lua/words.lua", "lua/lease.lua", "lua/seal.lua");
pub(crate) static HEAL: LazyLock<Script> =
    script!("lua/words.lua", "lua/lease.lua", "lua/heal.lua");
pub(crate) static ACQUIRE_IN_TURN: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/in_turn_alone.lua",
    "lua/lease.lua",
    "lua/readers.lua",
    "lua/queue.lua",
    "lua/in_turn.lua",
    "lua/acquire_in_turn.lua"
);
pub(crate) static HAND_ON: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        include_str!("lua/words.lua"),
        include_str!("lua/hand_on.lua"),
        "local function attempt()\n",
        include_str!("lua/hand_on_alone.lua"),
        include_str!("lua/in_turn_alone.lua"),
        include_str!("lua/lease.lua"),
        include_str!("lua/readers.lua"),
        include_str!("lua/queue.lua"),
        include_str!("lua/in_turn.lua"),
        include_str!("lua/acquire_in_turn.lua"),
        "end\n",
        include_str!("lua/hand_on_end.lua"),
    ))
});
pub(crate) static ACQUIRE_PERMIT_IN_TURN: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/readers.lua",
    "lua/permits.lua",
    "lua/queue.lua",
    "lua/offers.lua",
    "lua/in_turn.lua",
    "lua/acquire_permit_in_turn.lua"
);
pub(crate) static DEPART: LazyLock<Script> = script!(
    "lua/release_alone.lua",
    "lua/words.lua",
    "lua/hand_over_alone.lua",
    "lua/lease.lua",
    "lua/release.lua",
    "lua/queue.lua",
    "lua/depart.lua"
);
pub(crate) static DEPART_WITH_PERMIT: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/readers.lua",
    "lua/permits.lua",
    "lua/release.lua",
    "lua/queue.lua",
    "lua/offers.lua",
    "lua/depart.lua"
);
pub(crate) static LEAVE_QUEUE: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/readers.lua",
    "lua/permits.lua",
    "lua/queue.lua",
    "lua/offers.lua",
    "lua/leave_queue.lua"
);
pub(crate) static BREAK: LazyLock<Script> = script!(
    "lua/words.lua",
    "lua/lease.lua",
    "lua/break.lua",
    "lua/queue.lua",
    "lua/depart.lua"
);
pub(crate) static RECORD_OPEN: LazyLock<Script> = script!("lua/record.lua", "lua/record_open.lua");
pub(crate) static RECORD_WRITE: LazyLock<Script> =
    script!("lua/record.lua", "lua/record_write.lua");
pub(crate) static RECORD_READ: LazyLock<Script> = script!("lua/record.lua", "lua/record_read.lua");
pub(crate) static FORGET: LazyLock<Script> = script!("lua/words.lua", "lua/forget.lua");
pub(crate) static CARD_WRITE: LazyLock<Script> = script!("lua/card.lua", "lua/card_write.lua");
pub(crate) static WITNESS: LazyLock<Script> = script!("lua/card.lua", "lua/witness.lua");

/// What a user must be allowed for the plain attempt, and for any of the scripts: the library's
/// front page has the same list as one `ACL SETUSER` line, and a test holds them together.
pub(crate) const RIGHTS: Rights = Rights(
    "+set +get +del +exists +pttl +pexpire +pexpireat +type +zadd +zincrby +zscore +zrange +zrank \
     +zrem +zremrangebyscore +hget +hset +hgetall +time +publish +evalsha \
     +script|load",
);

#[cfg(test)]
mod tests;
