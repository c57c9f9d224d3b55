//! A process that adds one to records, each time under the lock.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::env::Entropy as _;
use leasehold::store::background;
use leasehold::{Client, Guard, Lock};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::faults::ResourceClient;
use leasehold_testkit::{SecondProcess, SeededEntropy};
use tokio::runtime::Builder;
use tokio_postgres::NoTls;

pub(crate) const VERB: &str = "--worker";

/// The lock that all of them share.
pub(crate) const LOCK: &str = "the-record";

pub(crate) const TTL: Duration = Duration::from_secs(2);

/// How long a worker waits for the lock before it reports that it did not get it.
const WAIT: Duration = Duration::from_secs(1);

/// A record in the database of the locks, and the log of those that changed it.
pub(crate) const TABLES: &str = "create table counter (value bigint); insert into counter values (0); \
     create table written (number bigserial, fence bigint, value bigint);";

/// Starts worker `number`, which takes the lock at one address, and works at the other.
pub(crate) fn start(number: usize, resource: &Path, locks: &str, data: &str) -> SecondProcess {
    let resource = resource.display().to_string();
    let own = [VERB, &number.to_string(), &resource, locks, data];
    SecondProcess::start(own.map(String::from))
}

pub(crate) fn main(arguments: &[&str]) -> ExitCode {
    let [number, resource, locks, data] = arguments else {
        panic!("a worker needs a number, a resource and two addresses: {arguments:?}")
    };
    let store = PostgresStore::new(locks).expect("a URL");
    let number: usize = number.parse().expect("a number");
    let mut worker = Worker {
        number,
        chance: SeededEntropy::new(number as u64),
        resource: ResourceClient::connect(Path::new(resource)).expect("the resource"),
        lock: Client::new(store.clone()).lock(LOCK).ttl(TTL).wait(WAIT),
        store,
        data: (*data).to_owned(),
    };
    let stop = SecondProcess::input_ended();
    // The thread of the runtime drives connections while the worker works.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        while !stop.load(Ordering::SeqCst) {
            worker.round().await.expect("the resource");
        }
    });
    ExitCode::SUCCESS
}

struct Worker {
    number: usize,
    chance: SeededEntropy,
    resource: ResourceClient,
    lock: Lock,
    store: PostgresStore,
    data: String,
}

impl Worker {
    async fn round(&mut self) -> io::Result<()> {
        let barging = self.chance.next_u64().is_multiple_of(4);
        let least = Duration::from_millis(2 + self.chance.next_u64() % 20);
        let asked = SystemClock.now();
        let guard = match self.lock.clone().barging(barging).acquire().await {
            Ok(guard) => guard,
            Err(error) => return self.resource.refused(self.number, &error.to_string()),
        };
        self.resource.work(self.number, asked, &guard, least)?;
        // It may fail: the server is broken now and then.
        let _ = self.commit(&guard).await;
        // The grants to other workers show whether the lease was released.
        let _ = guard.release().await;
        Ok(())
    }

    /// Adds one in a transaction that checks the fence, whether or not the guard is still valid.
    async fn commit(&self, guard: &Guard) -> Result<(), Box<dyn std::error::Error>> {
        let (mut client, connection) = tokio_postgres::connect(&self.data, NoTls).await?;
        let driving = background::spawn(connection);
        let done = async {
            let transaction = client.transaction().await?;
            let row = transaction
                .query_one("select value from counter", &[])
                .await?;
            let (value, fence) = (row.get::<_, i64>(0) + 1, i64::try_from(guard.fence())?);
            if !self
                .store
                .holds(&transaction, guard.key(), guard.fence())
                .await?
            {
                return Ok(());
            }
            transaction
                .execute("update counter set value = $1", &[&value])
                .await?;
            let log = "insert into written (fence, value) values ($1, $2)";
            transaction.execute(log, &[&fence, &value]).await?;
            transaction.commit().await?;
            Ok(())
        };
        let done = done.await;
        driving.abort();
        done
    }
}
