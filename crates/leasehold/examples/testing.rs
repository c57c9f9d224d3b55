//! Tests of code that uses locks. The code takes a client, and a test gives it one of a store in memory.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::time::Duration;

use leasehold::{Client, Error, ErrorKind, Guard, LostReason, memory::MemoryStore};

// What a program does.

#[derive(Debug, PartialEq)]
enum Import {
    Done(u32),
    Busy,
}

async fn import(locks: &Client) -> Result<Import, Error> {
    let Some(guard) = locks.lock("import").try_acquire().await? else {
        return Ok(Import::Busy);
    };
    let rows = guard.run(async |guard| import_rows(guard)).await??;
    Ok(Import::Done(rows))
}

fn import_rows(guard: &Guard) -> Result<u32, Error> {
    guard.ensure(Duration::from_secs(1))?;
    Ok(3)
}

// What its tests do. Each of them would be a #[tokio::test].

async fn import_runs_under_the_lock() -> Result<(), Error> {
    let locks = Client::new(MemoryStore::new());
    assert_eq!(import(&locks).await?, Import::Done(3));
    assert!(
        locks.lock("import").try_acquire().await?.is_some(),
        "it is released"
    );
    Ok(())
}

/// Another machine is another client of the same store.
async fn import_leaves_the_work_to_another_machine() -> Result<(), Error> {
    let store = MemoryStore::new();
    let (ours, theirs) = (Client::new(store.clone()), Client::new(store));
    let _held = theirs.lock("import").acquire().await?;
    assert_eq!(import(&ours).await?, Import::Busy);
    Ok(())
}

/// A guard that is given up is lost at once, so no test waits for a lease to end.
async fn import_stops_if_the_lock_is_lost() -> Result<(), Error> {
    let locks = Client::new(MemoryStore::new());
    let guard = locks.lock("import").acquire().await?;
    guard.give_up();
    let error = import_rows(&guard).expect_err("the lock is lost");
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(error.lost_reason(), Some(LostReason::GivenUp));
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    import_runs_under_the_lock().await?;
    import_leaves_the_work_to_another_machine().await?;
    import_stops_if_the_lock_is_lost().await?;
    println!("all three tests passed");
    Ok(())
}
