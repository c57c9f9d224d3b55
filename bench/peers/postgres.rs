use std::sync::Arc;

use futures_util::future;
use leasehold_testkit::servers::PostgresServer;
use tokio_postgres::{Client, NoTls, Statement};

use super::unknown;
use crate::error::Fallible;
use crate::worker::{Handle, Task, held, obey};

/// The tables of the bare client and of the row locks.
const TABLES: &str = "create table if not exists bare (name text primary key); \
     create table if not exists rows (name text primary key)";

pub(super) async fn run(part: &str, task: &Task) -> Fallible {
    let url = PostgresServer::url_at(task.port()?);
    match part {
        "bare" => obey(bare(&url, task).await?, task).await,
        "advisory" => obey(advisory(&url, task).await?, task).await,
        "advisory-held" => held::obey_as_peer(hold_advisory(&url, task)).await,
        "rows" => obey(rows(&url, task).await?, task).await,
        _ => Err(unknown(part)),
    }
}

async fn connect(url: &str) -> Fallible<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A row that is there while the lock is held: two statements that change one row, and no more.
struct Bare {
    client: Arc<Client>,
    insert: Statement,
    delete: Statement,
    key: String,
}

async fn bare(url: &str, task: &Task) -> Fallible<Vec<Bare>> {
    let client = Arc::new(connect(url).await?);
    client.batch_execute(TABLES).await?;
    let insert = "insert into bare values ($1) on conflict do nothing";
    let insert = client.prepare(insert).await?;
    let delete = client.prepare("delete from bare where name = $1").await?;
    let handle = |key| Bare {
        client: Arc::clone(&client),
        insert: insert.clone(),
        delete: delete.clone(),
        key,
    };
    Ok(task.keys().map(handle).collect())
}

impl Handle for Bare {
    type Held = ();

    async fn try_acquire(&self) -> Fallible<Option<()>> {
        let inserted = self.client.execute(&self.insert, &[&self.key]).await?;
        Ok((inserted == 1).then_some(()))
    }

    async fn release(&self, (): ()) -> Fallible {
        let deleted = self.client.execute(&self.delete, &[&self.key]).await?;
        Ok((deleted == 1).then_some(()).ok_or("lost")?)
    }
}

/// An advisory lock. It belongs to a connection, so each waiter has its own.
struct Advisory {
    client: Client,
    lock: Statement,
    try_lock: Statement,
    unlock: Statement,
    key: String,
}

async fn advisory(url: &str, task: &Task) -> Fallible<Vec<Advisory>> {
    future::try_join_all(task.keys().map(|key| Advisory::open(url, key))).await
}

/// Takes all locks of the task in one connection.
async fn hold_advisory(url: &str, task: &Task) -> Fallible<Advisory> {
    let holder = Advisory::open(url, String::new()).await?;
    for number in 0..task.waiters {
        let key = format!("held/{number}");
        holder.client.query_one(&holder.lock, &[&key]).await?;
    }
    Ok(holder)
}

impl Advisory {
    async fn open(url: &str, key: String) -> Fallible<Self> {
        let client = connect(url).await?;
        let call = |function| format!("select {function}(hashtextextended($1, 0))");
        Ok(Self {
            lock: client.prepare(&call("pg_advisory_lock")).await?,
            try_lock: client.prepare(&call("pg_try_advisory_lock")).await?,
            unlock: client.prepare(&call("pg_advisory_unlock")).await?,
            client,
            key,
        })
    }
}

impl Handle for Advisory {
    type Held = ();

    async fn acquire(&self) -> Fallible {
        self.client.query_one(&self.lock, &[&self.key]).await?;
        Ok(())
    }

    async fn try_acquire(&self) -> Fallible<Option<()>> {
        let row = self.client.query_one(&self.try_lock, &[&self.key]).await?;
        Ok(row.get::<_, bool>(0).then_some(()))
    }

    async fn release(&self, (): ()) -> Fallible {
        let row = self.client.query_one(&self.unlock, &[&self.key]).await?;
        Ok(row.get::<_, bool>(0).then_some(()).ok_or("lost")?)
    }
}

/// The lock of a row, which lasts as long as a transaction. Each waiter has a connection of its own.
struct Row {
    client: Client,
    lock: Statement,
    try_lock: Statement,
    key: String,
}

async fn rows(url: &str, task: &Task) -> Fallible<Vec<Row>> {
    let owner = connect(url).await?;
    owner.batch_execute(TABLES).await?;
    let insert = "insert into rows values ($1) on conflict do nothing";
    for key in task.keys() {
        owner.execute(insert, &[&key]).await?;
    }
    let select = "select from rows where name = $1 for update";
    let open = async |key| {
        let client = connect(url).await?;
        Ok(Row {
            lock: client.prepare(select).await?,
            try_lock: client.prepare(&format!("{select} skip locked")).await?,
            client,
            key,
        })
    };
    future::try_join_all(task.keys().map(open)).await
}

impl Row {
    /// Begins a transaction and locks the row. Both statements are on their way at once.
    async fn begin(&self, lock: &Statement) -> Fallible<bool> {
        let begin = self.client.batch_execute("begin");
        let (begun, found) = future::join(begin, self.client.query_opt(lock, &[&self.key])).await;
        begun?;
        Ok(found?.is_some())
    }
}

impl Handle for Row {
    type Held = ();

    async fn acquire(&self) -> Fallible {
        Ok(self
            .begin(&self.lock)
            .await?
            .then_some(())
            .ok_or("no row")?)
    }

    async fn try_acquire(&self) -> Fallible<Option<()>> {
        if self.begin(&self.try_lock).await? {
            return Ok(Some(()));
        }
        self.client.batch_execute("rollback").await?;
        Ok(None)
    }

    async fn release(&self, (): ()) -> Fallible {
        Ok(self.client.batch_execute("commit").await?)
    }
}
