//! A request that is to take effect once, though it is made twice, by two programs, or by one that dies.
//!
//! A message is delivered again; a user presses the button a second time; a job is started on two
//! machines; a program is killed and started anew. [`Client::once`](crate::Client::once) gives the request a name, runs it
//! under the lock of that name, and keeps its result for whoever asks again.
//!
//! # What holds, and what does not
//!
//! At most one result is committed, and everybody gets that one. That is all a library can promise
//! without the resource: the *attempt* is made at least once. A caller that dies in the middle has done what it has done, and the
//! next one begins anew. Three ways to make that harmless:
//!
//! - Do the work where it is undone with the attempt: compute, and let the result be the effect.
//! - Hand the attempt's [fence](crate::OnceRun::guard) to the resource and have it refuse smaller ones
//!   ([`fencing`](super::fencing)), so that a paused attempt does nothing more.
//! - Hand on the name of the request as the key under which the next service makes it once, in turn.
//!
//! # How
//!
//! The lock's [record](crate::HeldRecord) says how far the request has come. Every step is a write with the fence
//! of the attempt's lease:
//!
//! | step | what is written | who dies here |
//! |---|---|---|
//! | look | nothing: a result that is settled is the answer | nobody notices |
//! | take the lock | nothing | the lease runs out |
//! | open the record | smaller fences are shut out | the lease runs out, the next one opens it |
//! | begin | "begun", and the hash of the payload | the same |
//! | run | nothing | the same, and the request is run again |
//! | commit | the result | the next one finds the result, or runs the request again: either, not both |
//! | release | nothing | the lease runs out; whoever waits gets the result |
//!
//! On a quorum this is consensus with fences as ballots (CASPaxos): opening and writing take a majority, two
//! majorities have a member in common, and a value that only some members have is written anew before anybody is told
//! of it. The lease is no part of the proof: it sees to it that two do not try at
//! once.
//!
//! It stands as long as no member forgets what it acknowledged. So the members must be durable, and one that
//! is not is named and refused.
//!
//! A member that lost its data (a new disk, `FLUSHALL`) has no vote on requests until it has kept everything for one
//! retention, and about two minutes more. It would say that a result does not exist which it has only forgotten.
//! The same goes for a member that joins later, for one that becomes durable after the quorum was initialized, and
//! for all members of a quorum that a client formed instead of `leasehold init`: they may all have been flushed.
//! Until then such members store what they are sent, and the others must be a majority: if one of three
//! servers has a new disk, the other two must both answer. Otherwise the call fails, and its error names the
//! member and the time that is left. Nothing is run. Make servers durable before `leasehold init`: the members of a
//! quorum that was just initialized have forgotten nothing.
//!
//! Some losses show nowhere. They make the quorum forget a result, so that the request is run again, or is
//! committed twice:
//!
//! - an old backup that is put back on one member, or a record file that is removed;
//! - all members lose their data at once, and an operator initializes the quorum again;
//! - members are removed, and the remaining ones never heard of the result. After a removal, and until the
//!   retention is over, rely on what the resource itself refuses.
//!
//! # Retention
//!
//! A result is kept for so long after its commit, by the store's clock. Choose it longer than the time within which
//! the request may be repeated: once it is over, the request is a new one. That somebody had begun is remembered as
//! long, but for a week at most. Beyond the retention it is remembered for a week who was there: a caller that was paused
//! for six days or more after its deadline commits nothing any more. All who use a name should say the same retention:
//! on a quorum a value that is kept for a shorter time than the one before may, once it is over, let that one show
//! again at a member which missed the later write.
