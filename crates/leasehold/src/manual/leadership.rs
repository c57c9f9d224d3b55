//! Leadership: one of many does the work, and everybody can see who.
//!
//! [`Client::election`](crate::Client::election) is a lock that its holder keeps until told otherwise, and a
//! record beside it that says who that is. Each candidate [campaigns](crate::Election::campaign); one
//! leads; when it [resigns](crate::Leadership::resign), dies or is cut off, the next one does.
//!
//! ```
//! # pollster::block_on(async {
//! use leasehold::{Client, LeaderChange, MemoryStore};
//!
//! let locks = Client::new(MemoryStore::new());
//! let election = locks.election("scheduler").value("10.0.0.7:8080");
//! let leadership = election.campaign().await?;
//!
//! let mut watch = locks.election("scheduler").observe()?;
//! if let Some(LeaderChange::Leads(leader)) = watch.next().await {
//!     assert_eq!(leader.value, "10.0.0.7:8080");
//! }
//! leadership.lead(async { /* as long as this one leads */ }).await?;
//! leadership.resign().await?;
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # What is promised
//!
//! - **One leads.** No two [`Leadership`](crate::Leadership)s of one name are valid at the same instant: what
//!   [`Guarantees::exclusion`](crate::Guarantees::exclusion) says of guards, for a leadership is one.
//! - **It is told in time.** A leader that cannot renew its lease is told so before another one can lead:
//!   [`lead`](crate::Leadership::lead) cancels its body, [`lost`](crate::Leadership::lost) resolves.
//! - **Leaders are in order.** Each has a greater [fence](crate::Fence) than all before it, and observers never
//!   see an older one after a newer one, nor an older value of the same one.
//! - **A late leader publishes nothing.** Its announcement is refused once a later one has announced itself,
//!   and counts for nobody once the lock is another's.
//! - **A dead leader is followed** after one TTL, and the [delay](crate::Lock::lock_delay) if one was set; on
//!   the file store at once. One that resigned is followed by whoever waited longest, where
//!   [`Guarantees::order`](crate::Guarantees::order) says so.
//!
//! # What is not
//!
//! - **That only one *thinks* that it leads.** A leader that is paused, whole machine or process, thinks so until
//!   it looks, and another one leads meanwhile. What it sent before may arrive later still. So what is led
//!   compares [fences](super::fencing): "I am the leader, with fence 12" is an order, "I am the leader" is a
//!   rumour. The same goes for whoever acts on an observer's news.
//! - **That observers see every leader.** They look once a second
//!   ([`look_every`](crate::Election::look_every)); one that led for less may be missed. Nor is it seen at once
//!   that a leader died: its lease stands until then.
//! - **That there is a leader.** While no majority of a quorum answers nobody leads, and a leader whose lease ends
//!   meanwhile stops.
//!
//! # What it costs
//!
//! A campaign is a lock and two requests more, which open its record and write it; to lead, its renewals and a
//! write a minute; to resign, a write and a release. An observer costs two reads a look, on a quorum at
//! every member: many observers of one leader should share a watch within a process.
//!
//! # The record
//!
//! What a leader publishes lies beside the lock, as a value of up to 4 KiB that everybody can read who can ask
//! the store. It names the attempt by which its writer holds the lock, and counts for that one alone. A
//! leader that resigns takes it back; of one that died it stays until the next one leads, or for a year. On
//! members that lost their data it is missing until the leader writes it again.
