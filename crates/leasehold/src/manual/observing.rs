//! Observing: what the library tells of itself, by metrics and by spans.
//!
//! Both go through facades, [`metrics`] and [`tracing`]: a program that installs neither a recorder nor a
//! subscriber pays a branch for each, and nothing is kept. The library serves no port and writes no log.
//!
//! # Metrics
//!
//! Install the recorder first, then build stores and clients. They ask for their metrics once, when they are built, so
//! that each later value costs an atomic step and no search. A recorder that comes later hears of those alone that are
//! built after it. One that drops metrics which nobody touched for a while, as some do when told to, loses them for
//! good: leave that off.
//!
//! | name | type | unit | label beside `store` | what it measures |
//! |---|---|---|---|---|
//! | `leasehold_acquire_wait_seconds` | histogram | seconds | `outcome`: `granted`, `busy`, `timeout`, `cancelled`, `unavailable`, `refused` | from the call of `acquire` or `try_acquire` to its outcome |
//! | `leasehold_attempts_total` | counter | 1 | `outcome`: `granted`, `busy`, `failed`, `unknown`, `cut_off` | how often the store was asked for a lock; one call may ask many times |
//! | `leasehold_contended_total` | counter | 1 | none | calls that found the lock held by somebody else at least once |
//! | `leasehold_hand_over_seconds` | histogram | seconds | none | from the first message of a server that it is a waiter's turn to its grant |
//! | `leasehold_held` | gauge | 1 | none | locks and permits that are held now, one in doubt too; shares of a guard are one |
//! | `leasehold_hold_seconds` | histogram | seconds | `end`: `released`, `lost`, `handed_on` | from the sending of the request that was granted to the release, or to the loss; a loss by time is at the deadline, whenever it is noticed |
//! | `leasehold_lost_total` | counter | 1 | `reason`: `expired`, `unreachable`, `stood_still`, `taken`, `gone`, `broken`, `max_hold`, `given_up` | guards that were lost before they were given back; [`LostReason`](crate::LostReason) says what each one means |
//! | `leasehold_members` | gauge | 1 | `state`: `counting`, `distrusted`, `failing`, `unknown` | members of the store, by what was last heard of them |
//! | `leasehold_releases_total` | counter | 1 | `outcome`: `released`, `was_lost`, `left_shut`, `unknown` | locks that were given back, dropped ones too |
//! | `leasehold_renewal_seconds` | histogram | seconds | `outcome`: `renewed`, `lost`, `unknown` | from the sending of a renewal to what came of it, for each lease in the message |
//!
//! All times are the client's own, on the clock that counts suspend; none compares two machines.
//! [`METRICS`](crate::telemetry::METRICS) is the same table for programs.
//!
//! What the values mean:
//!
//! - An outcome is `busy` where nobody wanted to wait, and `timeout` where the lock was still held at the end of the wait.
//!   `unavailable`: the store, or too many of its members, gave no answer that counts. `refused`: no repetition will
//!   help. `cancelled`: the caller dropped the future. What breaks a rule before the store is asked is not counted.
//! - An attempt is `unknown` where it may have taken effect and nobody can say; it is freed. It is `cut_off` if its caller was
//!   gone, or the wait over, before there was an answer.
//! - A hold is `handed_on` when its guard became a [`Handle`](crate::Handle), or left the lock shut for a span. Whoever adopts
//!   the handle begins a hold of its own.
//! - A release is `left_shut` where a lost lock with a [delay](crate::Lock::lock_delay) was not freed, so that nothing was sent.
//! - A member is `counting` if its answers count, `distrusted` if it answers and that does not count, `failing` if its last
//!   answer was an error or did not come, and `unknown` until it was asked. Each store of Redis servers counts its
//!   own; a single Redis is one member. The file store and the memory store have no members, and no hand-over either.
//!
//! The label `store` is what [`Client::describe`](crate::Client::describe) says: no credentials, and one value for
//! each store that the process uses. *No label has the name of a lock*: there may be any number of them, and each would
//! be a series for ever. The spans have it.
//!
//! Alerts that are worth having, in the language of Prometheus:
//!
//! ```text
//! # Somebody lost a lock while working under it.
//! sum by (reason) (increase(leasehold_lost_total{reason!="given_up"}[5m])) > 0
//! # One more failure, and a quorum of five grants nothing: a set that should have 5 has 3.
//! min by (instance, store) (leasehold_members{state="counting"}) <= 3
//! # Renewals fail: locks will be lost at their deadlines.
//! sum by (store) (rate(leasehold_renewal_seconds_count{outcome="unknown"}[1m])) > 0
//! ```
//!
//! And two questions:
//!
//! ```text
//! # How long nine of ten callers wait, where the exporter was given buckets.
//! histogram_quantile(0.9, sum by (le) (rate(leasehold_acquire_wait_seconds_bucket{outcome="granted"}[5m])))
//! # How often a lock is found held.
//! sum(rate(leasehold_contended_total[5m])) / sum(rate(leasehold_acquire_wait_seconds_count[5m]))
//! ```
//!
//! `cargo run -p leasehold-redis --example prometheus -- redis://127.0.0.1:6379 9100` works under a lock and serves
//! all this on a port.
//!
//! # Spans and events
//!
//! | span | level | fields | around |
//! |---|---|---|---|
//! | `acquire` | info | `lock`, `mode`, `outcome`, `waited` | a call of `acquire` or `try_acquire`, all its attempts and waits; within the span of its caller |
//! | `release` | info | `lock`, `outcome` | a lock that is given back; within the span of whoever gives it back |
//! | `renewal` | debug | `leases`, `renewed`, `lost`, `unknown` | one message for many leases, with what became of each |
//!
//! Outcomes are the words of the metrics. Warnings say what operators should know without asking: that a guard was
//! `lost`, that renewals fail (one line for all locks, and one at level info when they succeed again), that a member has
//! no vote and when it has one again.
//!
//! No span, event or label has the owner of a lease, a [`Handle`](crate::Handle) or a URL.
