//! Fencing: how a resource refuses a holder that comes too late.
//!
//! A lease says until when a holder may act. It cannot say when an action *arrives*: between the check and
//! the write lie a scheduler, perhaps a suspended virtual machine, and a network. So each grant carries a
//! [`Fence`](crate::Fence) that is greater than every earlier one of its key, and the resource refuses a
//! fence that is smaller than the greatest it has seen. The lock makes late writes rare; the fence makes
//! them harmless.
//!
//! Every resource needs two things:
//!
//! 1. **Every write carries its fence**, and the resource compares the fence and writes in one step.
//! 2. **The holder announces itself first**, by [`Guard::fence_off`](crate::Guard::fence_off) or by its first
//!    write. Until then the resource has not seen its fence, and accepts an earlier holder.
//!
//! The fence protects only what checks it: a mail that a late holder sends is sent. Reads are not refused
//! either, unless they carry the fence too. Readers that share a lock all hold it with different fences, so
//! they must not show theirs.
//!
//! # At a server that asks the store
//!
//! A holder can send a [`Sequencer`](crate::fencing::Sequencer) along with a request: the name of the lock, its mode, and
//! the fence. The server that receives it asks the store with [`Client::check`](crate::Client::check) whether the grant
//! is still valid. The answer may be outdated when it arrives, so this narrows the gap and does not close it.
//!
//! # In one process
//!
//! [`FenceGate`](crate::fencing::FenceGate) guards something that several threads share, and runs each write in one
//! step with its check.
//!
//! ```
//! use leasehold::{Client, fencing::FenceGate, memory::MemoryStore};
//!
//! # pollster::block_on(async {
//! let (locks, gate) = (Client::new(MemoryStore::new()), FenceGate::new());
//! let paused = locks.lock("x").acquire().await?;
//! let late = paused.fence();
//! paused.release().await?;
//!
//! let next = locks.lock("x").acquire().await?;
//! next.fence_off(&gate).await?; // nothing is written yet, and older fences are refused
//! assert!(gate.run(late, || unreachable!()).unwrap_err().is_fenced());
//! gate.run(next.fence(), || { /* write */ })?;
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # In Redis
//!
//! `leasehold_redis::FencedKey` is a value on any Redis server, also one that grants no locks, whose writes
//! carry a fence. `leasehold_redis::FENCED_SCRIPT` is the script behind it, for a program that has its own
//! client. It also runs on a Redis Cluster.
//!
//! # In SQL: a column next to the data
//!
//! Fences are below 2^53, so `bigint` holds them. If the lock protects single rows, give each row a fence
//! column, `fence bigint NOT NULL DEFAULT 0`:
//!
//! ```sql
//! UPDATE invoice SET total = $1, fence = $2 WHERE id = $3 AND fence <= $2
//! ```
//!
//! If the statement changed no row, a later holder has written (or there is no such row): stop. This is
//! standard SQL, and one step in every database. It checks this one row: a deletion forgets its fence, and
//! an insertion has none to compare with.
//!
//! # In SQL: a table of fences
//!
//! If the lock protects more than one row, keep the fence of each resource in a table:
//!
//! ```sql
//! CREATE TABLE leasehold_fence (resource text PRIMARY KEY, fence bigint NOT NULL)
//! ```
//!
//! Each transaction of a holder begins with the following statement, and continues only if it changed a
//! row. If it changed none, a later holder has written: roll back. Alone in a transaction, the statement is
//! `fence_off`.
//!
//! ```sql
//! INSERT INTO leasehold_fence (resource, fence) VALUES ($1, $2)
//! ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence
//! WHERE leasehold_fence.fence <= excluded.fence
//! ```
//!
//! - **PostgreSQL** keeps the row locked until the transaction ends. A later holder's `fence_off` therefore waits
//!   for the writes of an earlier holder that passed the check, and finds them complete. A program that
//!   compares by itself can lock an existing row with `SELECT … FOR UPDATE`. A plain `SELECT` does not lock
//!   it, and the write after it may come too late.
//! - **SQLite** locks the whole database. Begin with `BEGIN IMMEDIATE`, which takes that lock and waits for
//!   it according to `busy_timeout`. A transaction that begins with a read takes the lock at its first
//!   write. If another transaction wrote in between, it fails with `SQLITE_BUSY` at once: roll back.
//! - **Isolation**, in PostgreSQL. Under `READ COMMITTED`, the default, a statement that waited for a row
//!   checks it again, so a late holder changes no row. Under `REPEATABLE READ` and `SERIALIZABLE` it fails
//!   with SQLSTATE 40001 (serialization failure): repeat the whole transaction, and it changes no row. No
//!   level accepts a smaller fence.
//! - **Elsewhere**: PostgreSQL (since 9.5) and SQLite (since 3.24) have `ON CONFLICT`. With any other
//!   database insert the row once, with fence 0, and begin the transaction with `UPDATE leasehold_fence SET
//!   fence = $2 WHERE resource = $1 AND fence <= $2`. MySQL's clients count the rows that *changed*, and a
//!   second write of the same fence changes none: configure them to count the rows found.
//!
//! A fence is as durable as its commit. A commit that the database may lose (`synchronous_commit = off`, a
//! fail-over to a standby that lags behind) takes the fence with it, together with the data.
//!
//! # What the order depends on
//!
//! On the file store, the order depends on a counter that is written to disk before the guard is returned.
//! On Redis it depends on a counter per member. That counter is at least the proposal of each attempt,
//! which is the client's wall clock in microseconds. No clock matters as long as no member has lost its
//! counter. After such a loss (a restart without data, or seven days without use) the order depends on the
//! clients' wall clocks: attempts must be further apart than those clocks differ.
