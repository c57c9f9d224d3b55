//! What can go wrong, and what happens then.
//!
//! | what | what happens |
//! |---|---|
//! | the holder dies | file: freed at once. Leases: freed after one TTL, and the [delay](crate::Lock::lock_delay) if one was set |
//! | the holder is paused past its TTL | the first look at its guard after waking says lost, before any renewal; work past its check needs the [fence](super::fencing) |
//! | the machine sleeps | the same: deadlines count the sleep |
//! | the store does not answer | the guard is in doubt, renewals are repeated, and at the deadline it is lost; it never comes back |
//! | a minority of a quorum is dead, frozen or cut off | a log line; a silent member costs no time until a probe gets through |
//! | a majority is | an error naming each member and its reason, within the wait given |
//! | a member gets a new disk | it has no vote on locks for the longest TTL and a second, and none on [requests](super::once) for their retention |
//! | an answer is lost on the way | the attempt is freed: its connection is aborted, and the release repeated until it gets through, and once more before the TTL is over |
//! | two clients split the votes | both free what they got; of those that wait, the older one is served next |
//! | a waiter dies | it is passed over: at once where its connection ended, else after a second, with all its fellows of the same client |
//! | a waiter is paused | the lock is kept for it for a second, then goes to the next; when it wakes it has its old place |
//! | the caller drops its future | the attempt is seen through in the background and freed |
//! | somebody removes the file of a held lock | the next one makes a new file and enters; the holder is told when its keeper looks next, within a third of the TTL |
//! | nobody renews the lease of a [handle](crate::Handle) | at its deadline the handle is lost, for ever; the lock is free after the TTL |
//! | a handle comes to another machine, or the machine restarts | it is lost, since nobody can measure its deadline; it can be released |
//! | the process forks | the child's copies of client and guard are `Forked` |
//!
//! # What is assumed
//!
//! Clocks of clients and members run at rates that differ by less than a tenth: that is the margin
//! between a guard's deadline and the end of its lease. On a quorum the members' clocks also agree
//! to within `clock_tolerance`.
//!
//! # Whose answers count
//!
//! A member of a quorum that may have forgotten leases could help a second holder to a majority. So
//! from three members on, an answer counts only if its member can be trusted, at each of the four
//! places where something is counted: a grant, the second round of its fence, a renewal, and a
//! lease that is put back. `leasehold_redis::TrustRules` sets it otherwise.
//!
//! | what happened to a member | for how long its answers do not count |
//! |---|---|
//! | restarted, and was durable before as it is now | not at all |
//! | restarted otherwise, or its data were flushed | `max_ttl` (60 s) and a second, from when the first client noticed |
//! | came back with data from before its durability was switched off, or was a replica | the same |
//! | its clock was stepped, or lies further than `clock_tolerance` (250 ms) from the lower median | `max_ttl`, from when that was noticed last |
//! | its card names another set of members, or other limits | until the lists agree |
//! | it is the same server as another member, evicts keys, or became a replica | until that is put right |
//!
//! A Redis server is durable with `appendonly yes`, `appendfsync always` and
//! `no-appendfsync-on-rewrite no`, unless it has replicas or was one since it started: a replica that
//! lags behind could take its place. A server that becomes durable while it runs is relied on from
//! its next restart on ([`Presence::will_remember`](crate::Presence::will_remember)). A server that
//! ceases to be durable keeps its vote, but may lose it with its next restart. Clients look at each
//! member when they start, and once a minute while they use it.
//!
//! Only attempts *sent* after that time count. "No quorum" names each member with its reason and
//! when it counts again; [`Lock::acquire`](crate::Lock::acquire) without a wait of its own goes on
//! until then. [`Client::health`](crate::Client::health) shows the same, and the log says when it
//! begins and ends.
//!
//! The set is written on its members, on a *card* each: who belongs to it, its limits, since when
//! the member remembers everything, and what it heard of the others. `RedisStore::init` writes the
//! first ones, and all count at once; without it the first client does, once all members have
//! answered, and then they count after a minute, since they may all have been flushed.
//!
//! A member that lost its data gets a new record when a majority of the members has the record of
//! this quorum, or when all members have answered and none contradicts. With three members, one empty
//! and one down, it waits for the third: a single record may be an old one. If the third cannot come
//! back, an operator decides with `leasehold members readmit`, or
//! `RedisStore::readmit`.
//!
//! A lease that a restarted member forgot is put back there by the holder's keeper, beside a
//! majority on which it still stands, once the member counts again: so one restart after the other
//! does not wear a long-held lock down.
//!
//! # A holder that hangs
//!
//! A process that hangs, and whose keeper goes on renewing, holds its lock for ever. An operator takes it
//! away with [`Client::break_lock`](crate::Client::break_lock), or `leasehold break`: the guard is lost as
//! [`Broken`](crate::LostReason::Broken) with the next renewal. Others may enter once the lease would
//! have ended by its last renewal, and so, as ever, not before the guard's deadline. To let them in at once
//! is possible where the resource checks [fences](super::fencing).
//!
//! # What stays outside
//!
//! - A member that was durable and comes back with an old copy of its data, such as a backup, where no
//!   other member knows better: one such member can be enough for two holders. A member that lost its
//!   data must start empty.
//! - A virtual machine that is paused does not know it: its clock stood still too. When renewals
//!   find that a majority of members moved on without it, its deadlines are brought in; what ran
//!   before that needs the [fence](super::fencing).
//! - A clock that is stepped and stepped back while nobody asks that member.
//! - Locks that clients of other libraries take for longer than `max_ttl`, on a member that then
//!   restarts: we do not wait for them.
//! - After a counter was lost the order of fences rests on the clients' wall clocks.
