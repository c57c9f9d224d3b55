//! Observing: what the library reports, by metrics and by spans.
//!
//! Both go through facades, [`metrics`] and [`tracing`]. A program that installs neither a recorder nor a
//! subscriber pays one branch for each and stores nothing. The library serves no port and writes no log.
//!
//! # Metrics
//!
//! Install the recorder first, then build stores and clients. They register their metrics once, when they
//! are built, so that each later value costs an atomic operation and no lookup. A recorder that is
//! installed later receives only the metrics of stores and clients that are built after it. Some recorders
//! can drop metrics that have not changed for a while. Leave that off, because such a metric never comes
//! back.
//!
//! | name | type | unit | label in addition to `store` | what it measures |
//! |---|---|---|---|---|
//! | `leasehold_acquire_wait_seconds` | histogram | seconds | `outcome`: `granted`, `busy`, `timeout`, `cancelled`, `unavailable`, `refused` | from the call of `acquire` or `try_acquire` to its outcome |
//! | `leasehold_attempts_total` | counter | 1 | `outcome`: `granted`, `busy`, `failed`, `unknown`, `cut_off` | attempts to take a lock; a wait is one, until the store fails |
//! | `leasehold_contended_total` | counter | 1 | none | calls that found the lock held by another owner at least once |
//! | `leasehold_hand_over_seconds` | histogram | seconds | none | from a server's first notification that it is the waiter's turn to its grant |
//! | `leasehold_held` | gauge | 1 | none | locks and permits that are held now, including those in doubt; shares of a guard are one |
//! | `leasehold_hold_seconds` | histogram | seconds | `end`: `released`, `lost`, `handed_on` | from the sending of the request that was granted to the release, or to the loss; a loss by time counts at the deadline, whenever it is noticed |
//! | `leasehold_lost_total` | counter | 1 | `reason`: `expired`, `unreachable`, `paused`, `taken`, `gone`, `broken`, `max_hold`, `given_up`, `closed` | guards that were lost before they were released; [`LostReason`](crate::LostReason) says what each one means |
//! | `leasehold_members` | gauge | 1 | `state`: `trusted`, `untrusted`, `failing`, `unknown` | members of the store, by their last answer |
//! | `leasehold_releases_total` | counter | 1 | `outcome`: `released`, `was_lost`, `left_closed`, `unknown` | locks that were released, including dropped ones |
//! | `leasehold_renewal_seconds` | histogram | seconds | `outcome`: `renewed`, `lost`, `unknown` | from the sending of a renewal to its outcome, for each lease in the message |
//!
//! All times are the client's own, on the clock that counts suspend; none compares two machines.
//! [`METRICS`](crate::telemetry::METRICS) is the same table for programs.
//!
//! What the values mean:
//!
//! - An outcome is `busy` if the caller did not want to wait, and `timeout` if the lock was still held at
//!   the end of the wait. `unavailable`: the store, or too many of its members, gave no answer that counts.
//!   `refused`: a repetition does not help. `cancelled`: the caller dropped the future. A call whose input
//!   breaks a rule fails before the store is asked, and is not counted.
//! - An attempt is `unknown` if it may have taken effect; the client frees it. It is `cut_off` if its
//!   caller was gone, or the wait over, before there was an answer.
//! - A hold is `handed_on` when its guard became a [`Handle`](crate::handle::Handle), or left the lock closed for a
//!   time. The client that adopts the handle begins its own hold.
//! - A release is `left_closed` if a lost lock with a [delay](crate::Lock::lock_delay) was not freed, so that
//!   nothing was sent.
//! - A member is `trusted` if its answers count, and `untrusted` if it answers but its answers do not
//!   count. It is `failing` if its last answer was an error or did not come, and `unknown` before its first
//!   answer. Each store of Redis servers counts its own members; a single Redis is one member. The file
//!   store and the memory store have no members, and no hand-over either.
//!
//! The label `store` is the name of the store, as `Display` of the [`Client`](crate::Client) shows it, without
//! credentials. There is one value for each store that the process uses. *No label contains the name of a
//! lock*: there may be any number of names, and each would create a series that never ends. The spans
//! contain it.
//!
//! Useful alerts, in PromQL:
//!
//! ```text
//! # A holder lost its lock while working under it.
//! sum by (reason) (increase(leasehold_lost_total{reason!~"given_up|closed"}[5m])) > 0
//! # One more failure, and a quorum of five grants nothing: a set that should have 5 has 3.
//! min by (instance, store) (leasehold_members{state="trusted"}) <= 3
//! # Renewals fail: locks will be lost at their deadlines.
//! sum by (store) (rate(leasehold_renewal_seconds_count{outcome="unknown"}[5m])) > 0
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
//! `cargo run -p leasehold-redis --example prometheus -- redis://127.0.0.1:6379 9100` works under a lock
//! and serves all this on a port.
//!
//! # Spans and events
//!
//! | span | level | fields | around |
//! |---|---|---|---|
//! | `acquire` | info | `lock`, `mode`, `outcome`, `waited` | a call of `acquire` or `try_acquire`, all its attempts and waits; within the span of its caller |
//! | `release` | info | `lock`, `outcome` | the release of a lock; within the span of the code that releases it |
//! | `renewal` | debug | `leases`, `renewed`, `lost`, `unknown` | one message for many leases, with the number of leases for each outcome |
//!
//! Outcomes have the same words as in the metrics. Warnings report what an operator should know. Their field
//! `event` has a value of [`LogEvent`](crate::telemetry::LogEvent), for programs that react to them; the texts
//! may change.
//!
//! | event | level | reports |
//! |---|---|---|
//! | `lost` | warn | a guard was lost |
//! | `renewals_fail`, `renewals_succeed` | warn, info | renewals fail, in one line for all locks, or succeed again |
//! | `member_has_no_vote`, `member_has_vote` | warn, info | a member lost its vote, or regained it |
//! | `member_unusable`, `member_answers` | warn, info | a server cannot be used, or answers again |
//!
//! # What happens to the locks of a program
//!
//! [`Client::events`](crate::Client::events) is a stream of values for the program itself: each lock of the client that
//! was acquired, released, or lost, locks that other clients began to wait for, and why a call of its own waits: for a
//! holder, or for a store that does not answer. A long job can finish its step early when its lock is contended. No log is
//! parsed, and nothing is sent while no stream exists.
//!
//! # Secrets
//!
//! No span, event or label contains the owner of a lease, a [`Handle`](crate::handle::Handle) or a URL.
//!
//! # Subscribers and recorders must not block
//!
//! The library calls the subscriber and the recorder on the threads that renew leases, fire deadlines, and
//! serve connections. A subscriber that blocks there stops the renewals of all locks of the client, and
//! delays the report of a loss. A stream blocks if its reader stalls: a full pipe to a log collector, or a
//! terminal after Ctrl-S. So a subscriber hands its lines to a thread of its own, through a queue with a
//! limit, and drops lines if the queue is full. `tracing_appender::non_blocking` does this for
//! `tracing_subscriber::fmt`; `fmt` alone writes in the calling thread.
