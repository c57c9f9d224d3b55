//! Requests that take effect once, even if they are made twice, by two programs, or by one that dies.
//!
//! A message is delivered again; a user presses the button a second time; a job starts on two machines; a
//! program is killed and started again. [`Client::once`](crate::Client::once) gives the request a name,
//! runs it under the lock of that name, and keeps its result for later callers.
//!
//! # What is promised
//!
//! At most one result is committed, and every caller gets the same one. A library can promise no more without
//! the resource: the *attempt* is made at least once. A caller may die in the middle, with part of its work
//! done, and the next one starts again. Three ways to make that harmless:
//!
//! - Do the work where it is undone with the attempt: compute, and let the result be the effect.
//! - Pass the attempt's [fence](crate::once::OnceRun::guard) to the resource, and make it refuse smaller ones
//!   ([`fencing`](super::fencing)), so that a paused attempt has no further effect.
//! - Pass the name of the request to the next service as the key under which that service runs it once.
//!
//! # How it works
//!
//! The lock's [record](crate::record::HeldRecord) stores the progress of the request. Every step is a write with
//! the fence of the attempt's lease:
//!
//! | step | what is written | if the caller dies here |
//! |---|---|---|
//! | read | nothing; a settled result is returned | no effect |
//! | acquire the lock | nothing | the lease runs out |
//! | open the record | smaller fences are shut out | the lease runs out, and the next caller opens the record |
//! | begin | "begun", and the hash of the payload | the same |
//! | run | nothing | the same, and the next caller runs the request again |
//! | commit | the result | the next caller finds the result or runs the request again: either, not both |
//! | release | nothing | the lease runs out; waiting callers get the result |
//!
//! On a quorum this is consensus with fences as ballots (CASPaxos). Opening and writing take a majority,
//! and any two majorities have a member in common. If only some members have a value, the client writes it
//! again before it returns it. The lease is not part of the proof: it keeps two callers from trying at the
//! same time.
//!
//! The proof holds as long as no member forgets what it acknowledged. So the members must be durable; a
//! call fails and names any member that is not.
//!
//! A member that lost its data (a new disk, `FLUSHALL`) has no vote on requests until it has kept
//! everything for one retention, and about two minutes more: it could report that a result does not exist
//! although it only forgot it. The same goes for a member that joins later, for one that becomes durable
//! after the quorum was initialized. It also goes for all members of a quorum that a client initialized, since
//! they may all have been flushed, until `leasehold init` states that they were new. Until then such members
//! store what they receive, and the others must form a majority: if one of three servers has a new disk, the
//! other two must both answer.
//! Otherwise the call fails without running the request, and its error names the member and the time that
//! is left. Make servers durable before `leasehold init`: the members of a quorum that was just initialized
//! have forgotten nothing.
//!
//! Some losses cannot be detected. They make the quorum forget a result, so that the request is run again,
//! or committed twice:
//!
//! - an old backup that is restored on one member, or a record file that is removed;
//! - all members lose their data at once, and an operator initializes the quorum again;
//! - members are removed, and the remaining ones never heard of the result. After a removal, and until the
//!   retention is over, rely on what the resource itself refuses.
//!
//! # Retention
//!
//! The store keeps a result for the retention after its commit, by its own clock. Choose a retention longer
//! than the time within which the request may be repeated: after it, the request is a new one. The store
//! remembers for the same time that a request has begun, but for a week at most. It remembers the greatest
//! fence for a week in any case: a caller that was paused for six days or more past its deadline commits
//! nothing. All callers that use a name should set the same retention. On a quorum a member may miss the
//! latest write. If that value is kept for a shorter time than the one before, the older value may show
//! again at this member once the newer one has expired.
