//! A process that adds one to records, each time under the lock.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use leasehold::clock::{BootInstant, Clock as _, SystemClock};
use leasehold::env::Entropy as _;
use leasehold::store::background;
use leasehold::{Client, Guard, Lock};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::SeededEntropy;
use leasehold_testkit::faults::ResourceClient;
use tokio_postgres::NoTls;

use leasehold_testkit::SecondProcess;

pub(crate) const VERB: &str = "--worker";

/// The lock that all of them share.
pub(crate) const LOCK: &str = "the-record";

pub(crate) const TTL: Duration = Duration::from_secs(2);

/// How long a worker waits for the lock before it reports that it did not get it.
const WAIT: Duration = Duration::from_secs(1);

/// The pause between two looks at the guard during the work.
const LOOK: Duration = Duration::from_millis(10);

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
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let listening = Builder::new().spawn(move || {
        // The input is closed, however reading ends.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        told.store(true, Ordering::SeqCst);
    });
    listening.expect("a thread");
    let runtime = tokio::runtime::Builder::new_current_thread()
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
        let asked = SystemClock.now();
        let guard = match self.lock.clone().barging(barging).acquire().await {
            Ok(guard) => guard,
            Err(error) => return self.resource.refused(self.number, &error.to_string()),
        };
        let granted = SystemClock.now();
        let fence = guard.fence().get();
        let stay = self.resource.granted(self.number, fence, asked, granted)?;
        let stay = stay.max(Duration::from_millis(2 + self.chance.next_u64() % 20));
        let mut valid_until = None;
        let left = self.work(&guard, stay, &mut valid_until).await?;
        // It may fail: the server is broken now and then.
        let _ = self.commit(&guard).await;
        self.resource.left(fence, valid_until, left)?;
        // The grants to other workers show whether the lease was released.
        let _ = guard.release().await;
        Ok(())
    }

    /// Reads, works, checks that it still holds the lock, and writes. The write takes as long as the work, since no program
    /// can act in the same instant as its check.
    async fn work(
        &mut self,
        guard: &Guard,
        stay: Duration,
        valid_until: &mut Option<BootInstant>,
    ) -> io::Result<BootInstant> {
        let plain = self.resource.plain_read()?;
        let base = self.resource.read(guard.fence().get())?;
        let end = SystemClock.now() + stay / 2;
        let still_valid = loop {
            let now = SystemClock.now();
            if !guard.is_valid() {
                break false;
            }
            *valid_until = Some(now);
            if now >= end {
                break true;
            }
            SystemClock.sleep_until(end.min(now + LOOK)).await;
        };
        if still_valid {
            SystemClock.sleep_until(SystemClock.now() + stay / 2).await;
            self.resource.plain_add_one(plain)?;
        }
        // A program without this check would write now, and only the fence could stop it.
        if let Some(base) = base {
            self.resource.add_one(guard.fence().get(), base)?;
        }
        let left = SystemClock.now();
        if guard.is_valid() {
            *valid_until = Some(left);
        }
        Ok(left)
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
