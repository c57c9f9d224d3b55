//! A database refuses the write of a holder that comes too late. SQLite stands for any database with SQL.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use leasehold::{Client, Fence, memory::MemoryStore};
use rusqlite::{Connection, params};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
pub(crate) async fn main() -> Outcome<()> {
    let locks = Client::new(MemoryStore::new());
    let database = Connection::open_in_memory()?;
    database.execute_batch(
        "CREATE TABLE invoice (id bigint PRIMARY KEY, total bigint, fence bigint NOT NULL DEFAULT 0);
         INSERT INTO invoice (id, total) VALUES (7, 0);",
    )?;

    let paused = locks.lock("invoice/7").acquire().await?;
    let late = paused.fence();
    // This holder is paused here until its lease is over, and another one gets the lock.
    paused.release().await?;

    let guard = locks.lock("invoice/7").acquire().await?;
    assert!(set_total(&database, 7, 120, guard.fence())?);
    assert!(
        !set_total(&database, 7, 99, late)?,
        "a later holder has written"
    );

    let total: i64 = database.query_row("SELECT total FROM invoice", [], |row| row.get(0))?;
    assert_eq!(total, 120);
    Ok(())
}

/// Writes the total, unless a later holder of the lock has written. Returns whether it did.
fn set_total(database: &Connection, id: i64, total: i64, fence: Fence) -> Outcome<bool> {
    let fence = i64::try_from(fence.get())?; // below 2^53
    let update = "UPDATE invoice SET total = ?1, fence = ?2 WHERE id = ?3 AND fence <= ?2";
    let rows = database.execute(update, params![total, fence, id])?;
    println!("total {total} with fence {fence}: {rows} row written");
    Ok(rows == 1)
}
