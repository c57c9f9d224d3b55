//! What can go wrong, and what happens then.
//!
//! | what | what happens |
//! |---|---|
//! | the holder dies | file: freed at once. Leases: freed after one TTL |
//! | the holder is paused past its TTL | the first look at its guard after waking says lost, before any renewal; work past its check needs the [fence](super::fencing) |
//! | the machine sleeps | the same: deadlines count the sleep |
//! | the store does not answer | the guard is in doubt, renewals are repeated, and at the deadline it is lost; it never comes back |
//! | a minority of a quorum is dead, frozen or cut off | a log line; a silent member costs no time until a probe gets through |
//! | a majority is | an error naming each member and its reason, within the wait given |
//! | an answer is lost on the way | the attempt is freed: its connection is aborted, and the release repeated until it gets through, and once more before the TTL is over |
//! | two clients split the votes | both free what they got and try again after a random pause |
//! | the caller drops its future | the attempt is seen through in the background and freed |
//! | somebody removes the file of a held lock | the next one makes a new file and enters; the holder is told when its keeper looks next, within a third of the TTL |
//! | the process forks | the child's copies of client and guard are `Forked` |
//!
//! # What is assumed
//!
//! Clocks of clients and members run at rates that differ by less than a tenth: that is the margin
//! between a guard's deadline and the end of its lease. On a quorum the members' clocks also agree
//! to within `clock_tolerance`.
//!
//! # What is not covered yet
//!
//! A member of a quorum that restarts *and has lost its data* has forgotten the leases it granted;
//! with a second such member, or one that never had the lease, it can help somebody else to a
//! majority while the first guard is valid. Until clients notice this by themselves, either run
//! members with `appendonly yes` and `appendfsync always`, or keep a restarted one away from
//! clients for longer than the longest TTL (60 s). The same holds for a member whose clock is set
//! forward by more than the margin, for `FLUSHALL`, and for clients whose lists of members differ.
