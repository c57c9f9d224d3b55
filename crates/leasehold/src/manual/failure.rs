//! What can go wrong, and what happens then.
//!
//! | event | what happens |
//! |---|---|
//! | the holder dies | file: the lock is free at once. Leases: it is free after one TTL, and the [delay](crate::Lock::lock_delay) if one was set |
//! | the holder is paused past its TTL | after it wakes, the first check of its guard reports the loss, before any renewal; work past its check needs the [fence](super::fencing) |
//! | the machine sleeps | the same: deadlines count the sleep |
//! | the store does not answer | the guard is in doubt, and the client repeats the renewals; at the deadline the guard is lost, and stays lost |
//! | a minority of a quorum is dead, frozen or cut off | a log line; a silent member costs no time until a probe reaches it |
//! | a majority is | an error that names each member and its reason, within the wait given |
//! | a member gets a new disk | it has no vote on locks for the longest TTL and a second, and none on [requests](super::once) for their retention |
//! | an answer is lost on the way | the client frees the attempt: it aborts its connection, repeats the release until the server answers, and sends it once more before the TTL is over |
//! | two clients split the votes | both free their votes; if they wait, the older waiter is served next |
//! | a waiter dies | the server skips it: at once if its connection ended, otherwise when its presence ends (at most 2.5 s after its last heartbeat), together with all other waiters of the same client |
//! | a waiter is paused | the lock passes to the next waiter when the presence of the paused client ends, at most 2.5 s after its last heartbeat; a waiter that wakes still has its old position |
//! | the caller drops its future | the client finishes the attempt in the background and frees it |
//! | the file of a held lock is removed | the next client creates a new file and acquires the lock; the holder learns of it at the next check by its client, within a third of the TTL |
//! | the lease of a [handle](crate::handle::Handle) is not renewed | at its deadline the handle is lost, and stays lost; the lock is free after the TTL |
//! | a handle reaches another machine, or the machine restarts | the handle is lost, since its deadline cannot be measured there; it can be released |
//! | the process forks | in the child, the copies of client and guard fail with `Forked` |
//!
//! # Assumptions
//!
//! Clocks of clients and members run at rates that differ by less than a tenth: that is the margin
//! between a guard's deadline and the end of its lease. On a quorum the members' clocks also agree
//! to within `clock_tolerance`.
//!
//! # Whose answers count
//!
//! A member of a quorum that may have forgotten leases could help a second holder to a majority. So with
//! three or more members, an answer counts only if its member can be trusted. This applies in four places:
//! a grant, the second round of its fence, a renewal, and a repair.
//! `leasehold_redis::TrustRules` changes this.
//!
//! | what happened to the member | how long its answers do not count |
//! |---|---|
//! | it restarted, and was durable before as it is now | they count |
//! | it restarted in any other way, or its data were flushed | `max_ttl` (60 s) and a second, from when the first client noticed |
//! | it came back with data from before its durability was switched off, or was a replica | the same |
//! | its clock was stepped, or differs by more than `clock_tolerance` (250 ms) from the lower median | `max_ttl`, from when that was last noticed |
//! | its record names another list of members, or other limits | until the lists agree |
//! | it is the same server as another member, evicts keys, or became a replica | until that is fixed |
//!
//! A Redis server is durable with `appendonly yes`, `appendfsync always` and `no-appendfsync-on-rewrite
//! no`, unless it has replicas or has been one since it started: a replica that lags behind could take its
//! place. A server that becomes durable while it runs counts as durable from its next restart on
//! ([`MemberStatus::will_remember`](crate::member::MemberStatus::will_remember)). A server that stops being durable keeps
//! its vote, but may lose it with its next restart. A client checks each member when it starts, and once a
//! minute while it uses the member.
//!
//! Only attempts *sent* after that time count. "No quorum" names each member with its reason and the time
//! at which it is eligible again. [`Lock::acquire`](crate::Lock::acquire) without a wait of its own
//! continues until then. [`Client::health`](crate::Client::health) shows the same, and the log says when it
//! begins and ends.
//!
//! Each member stores a record of the quorum. It lists the members and the limits, and says since when this
//! member remembers everything and what it has heard of the other members. `RedisStore::init` writes the
//! first records, and all members are trusted at once. Without it the first client writes them, once all
//! members have answered. The members are then trusted after a minute, since all of them may have been
//! flushed.
//!
//! A member that lost its data gets a new record when a majority of the members has the record of this
//! quorum, or when all members have answered and none contradicts. With three members, one empty and one
//! down, the client waits for the third: a single record may be an old one. If the third cannot come back,
//! an operator decides with `leasehold members readmit`, or `RedisStore::readmit`.
//!
//! If a restarted member forgot a lease, the holder's client repairs it there once the member is trusted
//! again, provided that a majority still has the lease. So one restart after another does not wear down a
//! lock that is held for long.
//!
//! # A holder that hangs
//!
//! A process that hangs while its client keeps renewing holds its lock indefinitely. An operator can take
//! it away with [`Client::break_lock`](crate::Client::break_lock), or `leasehold break`: the next renewal
//! reports the guard as lost ([`LostReason::Broken`](crate::LostReason::Broken)). Others may enter once the guard is
//! released, or once the lease would have ended by its last renewal, which is never before the guard's deadline. They may enter
//! at once only if the resource checks [fences](super::fencing). A shared lock or a permit is taken from one
//! holder, which its [owner](crate::look::Holder::owner) identifies.
//!
//! # What is not covered
//!
//! - A member that was durable and comes back with an old copy of its data, such as a backup, while no
//!   other member knows better. One such member can be enough for two holders. A member that lost its data
//!   must start empty.
//! - A paused virtual machine does not know that it was paused: its clock stopped too. When renewals show
//!   that a majority of members moved on without it, the client moves its deadlines closer. Work that ran
//!   before that needs the [fence](super::fencing).
//! - A clock that is stepped and stepped back while no client asks that member.
//! - Locks that clients of other libraries acquire for longer than `max_ttl`, on a member that then
//!   restarts: Leasehold does not wait for them.
//! - After a counter was lost, the order of fences depends on the clients' wall clocks.
