//! A process that holds a lock is stopped between its check and its write. Meanwhile its lease ends, and
//! another process takes the lock and writes. Then the first process continues, and writes too.
//!
//! The example tries the same late write four times: on a SQLite table and on a Redis server, each with and
//! without a check of the fence. Without the check the late write succeeds, and the second holder's write
//! is lost.
//!
//! ```sh
//! cargo run -p leasehold-redis --example late_write
//! ```
//!
//! The first holder is a separate process that is really stopped (`SIGSTOP`), like a suspended machine or a
//! process that was swapped out. The example starts a Redis server, and stops it at the end.
#![expect(
    clippy::print_stdout,
    reason = "it shows what happens, and two processes talk by pipes"
)]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold::Fence;
use leasehold::blocking::{Client, Guard};
use leasehold_redis::{FencedKey, FencedRedis, RedisStore};
use leasehold_testkit::servers::{RedisServer, Reply, RespConnection};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rusqlite::{Connection, params};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The lease of the stopped holder ends after this time. It is short enough to wait for, and long enough
/// for a slow machine to reach the point at which the holder is stopped.
const TTL: Duration = Duration::from_secs(5);

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => second_holder(),
        [port, database] => first_holder(port.parse()?, Path::new(database)),
        _ => Err("it takes no arguments".into()),
    }
}

/// What the lock protects: two rows, and two keys.
struct Resources {
    table: Connection,
    fenced_key: FencedKey,
    plain_client: RespConnection,
}

impl Resources {
    fn open(port: u16, database: &Path) -> Outcome<Self> {
        let table = Connection::open(database)?;
        table.busy_timeout(Duration::from_secs(30))?;
        let redis = FencedRedis::new(format!("redis://127.0.0.1:{port}"))?;
        Ok(Self {
            table,
            fenced_key: redis.key("checked")?,
            plain_client: RespConnection::open(port)?,
        })
    }

    /// Writes `text` in all four ways, and prints for each whether it succeeded.
    fn write(&mut self, fence: Fence, text: &str) -> Outcome<()> {
        let number = fence.get() as i64; // below 2^53

        let sql = "UPDATE note SET text = $1 WHERE name = 'unchecked'";
        let rows = self.table.execute(sql, [text])?;
        say("a SQLite row without the check", rows == 1);

        let sql = "UPDATE note SET text = $1, fence = $2 WHERE name = 'checked' AND fence <= $2";
        let rows = self.table.execute(sql, params![text, number])?;
        say("a SQLite row with the check", rows == 1);

        let answer = self.plain_client.call(&["SET", "unchecked", text])?;
        say(
            "a Redis key without the check",
            answer == Reply::Status("OK".into()),
        );

        match pollster::block_on(self.fenced_key.set(fence, text)) {
            Err(error) if error.is_fenced() => say("a Redis key with the check", false),
            written => {
                written?;
                say("a Redis key with the check", true);
            }
        }
        Ok(())
    }
}

fn say(what: &str, landed: bool) {
    let became = if landed { "landed" } else { "REFUSED" };
    println!("  {what}: {became}");
}

fn acquire(port: u16) -> Outcome<Guard> {
    let store = RedisStore::new([format!("redis://127.0.0.1:{port}")])?;
    let lock = Client::new(store).lock("note").ttl(TTL);
    Ok(lock.wait(12 * TTL).acquire()?)
}

/// The process that writes too late.
fn first_holder(port: u16, database: &Path) -> Outcome<()> {
    let mut resources = Resources::open(port, database)?;
    let guard = acquire(port)?;
    guard.ensure(TTL / 2)?;
    println!("{}", guard.fence());
    // After its check and before its write: here the other process stops it.
    std::io::stdin().read_line(&mut String::new())?;
    resources.write(guard.fence(), "the first holder's, late")?;
    println!("its guard is valid: {}", guard.is_valid());
    Ok(())
}

fn second_holder() -> Outcome<()> {
    let server = RedisServer::start();
    let dir = tempfile::tempdir()?;
    let database = dir.path().join("notes.sqlite");
    let mut resources = Resources::open(server.port(), &database)?;
    resources.table.execute_batch(
        "CREATE TABLE note (name text PRIMARY KEY, text text, fence bigint NOT NULL DEFAULT 0);
         INSERT INTO note (name) VALUES ('checked'), ('unchecked');",
    )?;

    let mut first = FirstHolder::start(server.port(), &database)?;
    let early = first.line()?;
    first.stop()?;
    println!("the first holder has the lock with fence {early}, and stands still");

    let guard = acquire(server.port())?;
    println!(
        "the second holder has it with fence {}, and writes",
        guard.fence()
    );
    guard.fence_off(&resources.fenced_key)?;
    resources.write(guard.fence(), "the second holder's")?;

    println!("the first holder goes on, and writes too late");
    first.go_on()?;
    while let Ok(line) = first.line() {
        println!("{line}");
    }

    println!("what is there now");
    let mut rows = resources
        .table
        .prepare("SELECT name, text FROM note ORDER BY name")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let (name, text): (String, String) = (row.get(0)?, row.get(1)?);
        println!("  SQLite, {name}: {text}");
    }
    for name in ["checked", "unchecked"] {
        if let Reply::Bulk(text) = server.command(&["GET", name]) {
            println!("  Redis, {name}: {text}");
        }
    }
    guard.release()?;
    Ok(())
}

/// The first holder, as the other process sees it.
struct FirstHolder {
    process: Child,
    pid: Pid,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl FirstHolder {
    fn start(port: u16, database: &Path) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(port.to_string())
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            pid: Pid::from_raw(i32::try_from(process.id())?),
            orders: process.stdin.take().ok_or("a pipe")?,
            lines: BufReader::new(process.stdout.take().ok_or("a pipe")?),
            process,
        })
    }

    /// Returns its next line, or an error once it has ended.
    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line)? {
            0 => Err("the first holder has ended".into()),
            _ => Ok(line.trim_end().into()),
        }
    }

    /// Stops all its threads, including those that renew the lease. Returns once they are stopped.
    fn stop(&self) -> Outcome<()> {
        kill(self.pid, Signal::SIGSTOP)?;
        waitpid(self.pid, Some(WaitPidFlag::WUNTRACED))?;
        Ok(())
    }

    fn go_on(&mut self) -> Outcome<()> {
        kill(self.pid, Signal::SIGCONT)?;
        writeln!(self.orders)?;
        Ok(())
    }
}

impl Drop for FirstHolder {
    fn drop(&mut self) {
        // Kills it even if it is still stopped because something above failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
