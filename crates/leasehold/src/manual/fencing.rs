//! Fencing: how a resource refuses a holder that comes too late.
//!
//! A lease says until when a holder may act. It cannot say when an action *arrives*: between the
//! check and the write lie a scheduler, perhaps a suspended virtual machine, and a network. So
//! each grant carries a [`Fence`](crate::Fence), greater than every earlier one of its key, and
//! the resource refuses a smaller one than the greatest it has seen. The lock makes late writes
//! rare; the fence makes them harmless.
//!
//! Two things are to be done, whatever the resource is:
//!
//! 1. **Every write shows its fence**, and is compared and done in one step.
//! 2. **The holder announces itself first**, by [`Guard::claim`](crate::Guard::claim) or by its first
//!    write. Until then the resource knows nothing of it, and lets an earlier holder in.
//!
//! What is not written there is not protected: a mail that a late holder sends is sent. Reading is
//! not refused either, unless it shows its fence too; and readers that share a lock, whose fences
//! differ though all of them hold it, must not show theirs.
//!
//! # In one process
//!
//! [`FenceGate`](crate::FenceGate) stands before what several threads share, and runs each write as
//! one step with its check.
//!
//! ```
//! use leasehold::{Client, FenceGate, MemoryStore};
//!
//! # pollster::block_on(async {
//! let (locks, gate) = (Client::new(MemoryStore::new()), FenceGate::new());
//! let paused = locks.lock("x").acquire().await?;
//! let late = paused.fence();
//! paused.release().await?;
//!
//! let next = locks.lock("x").acquire().await?;
//! next.claim(&gate).await?; // nothing is written yet, and the door is shut
//! assert!(gate.run(late, || unreachable!()).unwrap_err().is_fenced());
//! gate.run(next.fence(), || { /* write */ })?;
//! # Ok::<(), leasehold::Error>(()) }).unwrap();
//! ```
//!
//! # At a Redis
//!
//! `leasehold_redis::FencedKey` is a value at any Redis, also one that grants no locks, whose
//! writes show a fence. `leasehold_redis::FENCED_SCRIPT` is the script behind it, for a program that
//! has a client of its own, on a Redis Cluster too.
//!
//! # In SQL: a column beside the data
//!
//! Fences are below 2^53, so `bigint` holds them. Where the lock protects single rows, each has its
//! fence in a column, `fence bigint NOT NULL DEFAULT 0`:
//!
//! ```sql
//! UPDATE invoice SET total = $1, fence = $2 WHERE id = $3 AND fence <= $2
//! ```
//!
//! No row changed means that a later holder has been there (or that there is no such row): stop.
//! This is standard SQL, and one step in every database. It checks this one row: a deletion forgets
//! its fence, and an insertion has none to compare with.
//!
//! # In SQL: a table of fences
//!
//! Where the lock protects more than a row, a table has the fence of each resource:
//!
//! ```sql
//! CREATE TABLE leasehold_fence (resource text PRIMARY KEY, fence bigint NOT NULL)
//! ```
//!
//! Each transaction of a holder begins with this, and goes on to any other writes only if it
//! changed a row; if it changed none, a later holder has been there: roll back. Alone in a
//! transaction it is the claim.
//!
//! ```sql
//! INSERT INTO leasehold_fence (resource, fence) VALUES ($1, $2)
//! ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence
//! WHERE leasehold_fence.fence <= excluded.fence
//! ```
//!
//! - **PostgreSQL** keeps the row locked until the transaction ends, so a later holder's claim waits
//!   for the writes of an earlier one that was let in, and finds them complete. A
//!   `SELECT … FOR UPDATE` of a row that is there locks it too, for programs that compare by
//!   themselves; a plain `SELECT` does not, and the write behind it may come too late.
//! - **SQLite** locks the whole database: begin with `BEGIN IMMEDIATE`, which takes that lock, and
//!   waits for it as `busy_timeout` says. A transaction that begins with reading gets the lock at
//!   its first write or, if somebody wrote meanwhile, is told `SQLITE_BUSY` at once: roll back.
//! - **Isolation**, in PostgreSQL. Under `READ COMMITTED`, the default, a statement that waited for a
//!   row looks at it again: a late holder changes no row. Under `REPEATABLE READ` and
//!   `SERIALIZABLE` it fails with SQLSTATE 40001 (serialization failure): do the whole transaction
//!   again, and it changes no row. No level lets a smaller fence through.
//! - **Elsewhere**: `ON CONFLICT` is of PostgreSQL (since 9.5) and SQLite (since 3.24). With any
//!   other database put the row in once, with fence 0, and let
//!   `UPDATE leasehold_fence SET fence = $2 WHERE resource = $1 AND fence <= $2` begin the
//!   transaction. MySQL's clients count the rows that *changed*, and a second write of the same
//!   fence changes none: have them count the rows found.
//!
//! A fence is as durable as its commit. A commit that the database may lose (`synchronous_commit =
//! off`, a fail-over to a standby that lags behind) takes the fence with it, together with the data.
//!
//! # What the order rests on
//!
//! On the file store, on a counter that is on the disk before the guard is returned. On Redis, on
//! a counter per member that is at least the proposal of each attempt, which is the client's wall
//! clock in microseconds. No clock matters while no member has lost its counter. After such a loss
//! (a restart without data, or seven days of rest) the order rests on the clients' wall clocks:
//! attempts must be further apart than those clocks differ.
