use std::sync::Arc;
use std::time::Duration;

use leasehold::env::Env;
use leasehold::look::Owner;
use leasehold::store::{LockRequest, Session, SessionContext, Store as _};
use leasehold::{Client, Error, Guard, Key};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::{PostgresServer, until};
use tokio::runtime::Handle;

/// Long enough for a slow machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A server with the schema.
pub(crate) async fn server() -> PostgresServer {
    let server = PostgresServer::start();
    store(&server).init().await.expect("the schema");
    server
}

pub(crate) fn store(server: &PostgresServer) -> PostgresStore {
    PostgresStore::new(server.url()).expect("a URL")
}

pub(crate) fn client(server: &PostgresServer) -> Client {
    Client::new(store(server))
}

/// A session without a client of locks, and a request for the lock `job`.
pub(crate) fn session(store: &PostgresStore) -> (Arc<dyn Session>, Arc<LockRequest>) {
    let env = Env::default();
    let info = Arc::new(env.this_process(None));
    let wall = env.clock.wall();
    let owner = Owner::at(info.id, wall, &*env.entropy);
    let request = LockRequest::new(key("job"), owner, LONG, wall, Arc::clone(&info));
    let context = SessionContext::new(env, info, Handle::current());
    (store.open(context), Arc::new(request))
}

/// Takes a lock that is free.
pub(crate) async fn taken(client: &Client, name: &str) -> Guard {
    let lock = client.lock(name).ttl(LONG);
    lock.try_acquire()
        .await
        .expect("an answer")
        .expect("a free lock")
}

/// Whether the lock is free, found out by taking it.
pub(crate) async fn is_free(client: &Client, name: &str) -> Result<bool, Error> {
    match client.lock(name).ttl(LONG).try_acquire().await? {
        Some(guard) => guard.release().await.map(|_| true),
        None => Ok(false),
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).expect("a name")
}

/// Waits until a session of the server waits for a row.
pub(crate) fn until_waiting_for_a_row(server: &PostgresServer) {
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                   and backend_type = 'client backend';";
    until("a statement waits for a row", || {
        server.sql(waiting) != ["0"]
    });
}
