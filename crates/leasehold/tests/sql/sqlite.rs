use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use tempfile::TempDir;

use crate::{claim, create, update};

/// A database file with one invoice.
struct Database {
    dir: TempDir,
}

impl Database {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Self { dir };
        let connection = database.connect();
        connection.execute(&create(), []).unwrap();
        let invoice = "CREATE TABLE invoice (id bigint PRIMARY KEY, total bigint, \
                       fence bigint NOT NULL DEFAULT 0); \
                       INSERT INTO invoice (id, total) VALUES (7, 0);";
        connection.execute_batch(invoice).unwrap();
        database
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("data.sqlite")
    }

    fn connect(&self) -> Connection {
        open(&self.path())
    }

    fn total(&self) -> i64 {
        let sql = "SELECT total FROM invoice WHERE id = 7";
        self.connect().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(120)).unwrap();
    connection
}

fn set_total(connection: &Connection, total: i64, fence: i64) -> usize {
    connection
        .execute(&update(), params![total, fence, 7])
        .unwrap()
}

fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn claims(connection: &Connection, fence: i64) -> rusqlite::Result<usize> {
    connection.execute(&claim(), params!["invoices", fence])
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

#[test]
fn row_rejects_only_smaller_fences() {
    let database = Database::new();
    let (early, late) = (database.connect(), database.connect());
    assert_eq!(set_total(&early, 1, 5), 1);
    assert_eq!(set_total(&late, 2, (1 << 53) - 1), 1);
    assert_eq!(set_total(&late, 3, (1 << 53) - 1), 1);
    assert_eq!(set_total(&early, 4, (1 << 53) - 2), 0);
    assert_eq!(database.total(), 3);
}

#[test]
fn claim_rejects_earlier_holders_before_any_write() {
    let database = Database::new();
    let (mut early, later) = (database.connect(), database.connect());
    assert_eq!(claims(&early, 5).unwrap(), 1);
    assert_eq!(claims(&later, 7).unwrap(), 1);
    assert_eq!(claims(&later, 7).unwrap(), 1);
    let transaction = begin(&mut early).unwrap();
    assert_eq!(claims(&transaction, 5).unwrap(), 0);
    transaction.rollback().unwrap();
    let other = params!["another resource", 1];
    assert_eq!(early.execute(&claim(), other).unwrap(), 1);
}

#[test]
fn later_holder_waits_for_admitted_writes() {
    let database = Database::new();
    let (mut early, mut later) = (database.connect(), database.connect());
    let writing = begin(&mut early).unwrap();
    assert_eq!(claims(&writing, 5).unwrap(), 1);
    writing.execute("UPDATE invoice SET total = 1", []).unwrap();
    later.busy_timeout(Duration::ZERO).unwrap();
    assert!(
        is_busy(&begin(&mut later).unwrap_err()),
        "it may not get between"
    );
    writing.commit().unwrap();
    let next = begin(&mut later).unwrap();
    assert_eq!(claims(&next, 7).unwrap(), 1);
    next.commit().unwrap();
    assert_eq!(database.total(), 1);
    let late = begin(&mut early).unwrap();
    assert_eq!(claims(&late, 5).unwrap(), 0);
}

#[test]
fn read_first_transaction_is_refused() {
    let database = Database::new();
    let (mut early, later) = (database.connect(), database.connect());
    early.pragma_update(None, "journal_mode", "wal").unwrap();
    assert_eq!(claims(&early, 5).unwrap(), 1);
    let late = early.transaction().unwrap();
    let seen = "SELECT fence FROM leasehold_fence WHERE resource = 'invoices'";
    let seen: i64 = late.query_row(seen, [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 5, "it may write, as far as it can see");
    assert_eq!(claims(&later, 7).unwrap(), 1);
    assert!(is_busy(&claims(&late, 5).unwrap_err()));
    let write = late.execute("UPDATE invoice SET total = 1", []);
    assert!(is_busy(&write.unwrap_err()));
    drop(late);
    assert_eq!(claims(&early, 5).unwrap(), 0);
    assert_eq!(database.total(), 0);
}

/// The database may see the writes in any order, but accepts them only in the order of their fences.
#[test]
fn transactions_commit_in_fence_order() {
    const HOLDERS: i64 = 4;
    const EACH: i64 = 25;
    let database = Database::new();
    let log = "CREATE TABLE log (place integer PRIMARY KEY AUTOINCREMENT, fence bigint)";
    database.connect().execute(log, []).unwrap();
    std::thread::scope(|scope| {
        for first in 1..=HOLDERS {
            let path = database.path();
            scope.spawn(move || {
                let mut connection = open(&path);
                connection
                    .pragma_update(None, "synchronous", "off")
                    .unwrap();
                for step in 0..EACH {
                    let fence = first + step * HOLDERS;
                    let transaction = begin(&mut connection).unwrap();
                    if claims(&transaction, fence).unwrap() == 1 {
                        let write = "INSERT INTO log (fence) VALUES ($1)";
                        transaction.execute(write, [fence]).unwrap();
                        transaction.commit().unwrap();
                    }
                }
            });
        }
    });
    let connection = database.connect();
    let mut written = connection
        .prepare("SELECT fence FROM log ORDER BY place")
        .unwrap();
    let written = written.query_map([], |row| row.get(0)).unwrap();
    let written: Vec<i64> = written.map(Result::unwrap).collect();
    assert!(written.is_sorted(), "{written:?}");
    assert_eq!(written.last(), Some(&(HOLDERS * EACH)));
}
