//! Leadership: one of many clients does the work, and every client can see which one.
//!
//! [`Client::election`](crate::Client::election) combines a lock that its holder keeps until it resigns
//! with a record next to it that names the holder. Each candidate [campaigns](crate::election::Election::campaign),
//! and one of them leads. When the leader [resigns](crate::election::Leadership::resign), dies or is cut off, the
//! next candidate leads.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, election::LeaderChange, memory::MemoryStore};
//!
//! let locks = Client::new(MemoryStore::new());
//! let election = locks.election("scheduler").value("10.0.0.7:8080");
//! let leadership = election.campaign().await?;
//!
//! let mut watch = locks.election("scheduler").observe()?;
//! if let Some(LeaderChange::Leads(leader)) = watch.next().await {
//!     assert_eq!(leader.value, "10.0.0.7:8080");
//! }
//! leadership.run(async |_| { /* as long as this one leads */ }).await?; // and resigns
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! [`lead`](crate::election::Election::lead) is the whole life of a candidate in one call: it campaigns, runs a body while it
//! leads, and campaigns again after a loss, until a future says that the program stops.
//!
//! # What is promised
//!
//! - **There is one leader.** No two [`Leadership`](crate::election::Leadership)s of one name are valid at the same
//!   instant. A leadership is a guard, so [`Guarantees::exclusion`](crate::store::Guarantees::exclusion) says how
//!   far this holds.
//! - **It learns of its loss in time.** A leader that cannot renew its lease learns so before another one
//!   can lead: [`run`](crate::election::Leadership::run) cancels its body, and [`lost`](crate::election::Leadership::lost)
//!   resolves.
//! - **Leaders are in order.** Each has a greater [fence](crate::Fence) than all before it. Observers never
//!   see an older leader after a newer one, nor an older value of the same leader.
//! - **A late leader publishes nothing.** The store refuses its announcement once a later leader has
//!   announced itself, and observers ignore it once another client holds the lock.
//! - **A dead leader is replaced** after one TTL, and the [delay](crate::Lock::lock_delay) if one was set;
//!   on the file store at once. After a resignation the candidate that has waited longest leads, if
//!   [`Guarantees::order`](crate::store::Guarantees::order) says so.
//!
//! # What is not promised
//!
//! - **That only one client *believes* that it leads.** A paused leader, whether process or whole machine,
//!   believes so until it checks, and meanwhile another one leads. What it sent before may arrive even
//!   later. So the resource must compare [fences](super::fencing): "I am the leader, with fence 12" is an
//!   order, "I am the leader" is a rumour. The same goes for a client that acts on what an observer
//!   reports.
//! - **That observers see every leader.** They read once a second
//!   ([`poll_interval`](crate::election::Election::poll_interval)), and may miss a leader with a shorter term. They do not
//!   see at once that a leader died either: its lease lasts until its TTL is over.
//! - **That there is a leader.** As long as no majority of a quorum answers, there is no new leader, and a
//!   leader whose lease ends meanwhile stops.
//!
//! # What it costs
//!
//! A campaign costs a lock and two more requests, which open its record and write it. Leading costs the
//! renewals and a write a minute; resigning costs a write and a release. An observer sends two reads each
//! time, on a quorum to every member. Within a process, observers of the same leader should share a watch.
//!
//! # The record
//!
//! The record lies next to the lock and holds what a leader publishes: a value of up to 4 KiB that every
//! client with access to the store can read. It names the owner of the leader's lease, and counts only
//! while that owner holds the lock. A leader that resigns withdraws the record. The record of a leader that
//! died stays until the next one leads, or for a year. On members that lost their data it is missing until
//! the leader writes it again.
