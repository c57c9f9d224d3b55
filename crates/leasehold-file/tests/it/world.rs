use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leasehold::clock::WallTime;
use leasehold::env::{Env, SystemEntropy};
use leasehold::store::{Attempt, Claim, ClientInfo, Held, Owner, Store, Wait};
use leasehold::{Error, Fence, Key, Mode};
use leasehold_file::FileStore;
use tempfile::TempDir;

/// A fresh directory with a store in it, and a client of the store.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) store: FileStore,
    client: Arc<ClientInfo>,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).unwrap();
        Self {
            dir,
            store,
            client: client(),
        }
    }

    /// A second store on the same place, as another program would open it.
    pub(crate) fn another_store(&self) -> FileStore {
        FileStore::open(self.dir.path()).unwrap()
    }

    pub(crate) fn lock_file(&self, name: &str) -> PathBuf {
        self.store.lock_file(&key(name))
    }

    /// An exclusive claim whose proposal is `proposal`.
    pub(crate) fn claim(&self, name: &str, proposal: u64) -> Claim {
        claim(&self.client, name, proposal)
    }

    pub(crate) fn shared(&self, name: &str, proposal: u64) -> Claim {
        self.claim(name, proposal).with_mode(Mode::Shared)
    }

    /// Takes the lock, which must be free.
    pub(crate) async fn take(&self, name: &str, proposal: u64) -> (Claim, Fence) {
        let claim = self.claim(name, proposal);
        let fence = fence(self.store.acquire(&claim).await);
        (claim, fence)
    }

    /// Takes and releases the lock, and returns the fence of the grant.
    pub(crate) async fn pass(&self, name: &str, proposal: u64) -> u64 {
        let (claim, fence) = self.take(name, proposal).await;
        self.store.release(&claim).await.unwrap();
        fence.get()
    }
}

pub(crate) fn client() -> Arc<ClientInfo> {
    Arc::new(ClientInfo::of_this_process(&Env::default(), None))
}

pub(crate) fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

pub(crate) fn claim(client: &Arc<ClientInfo>, name: &str, proposal: u64) -> Claim {
    Claim::new(
        key(name),
        Owner::random(client.id, &SystemEntropy),
        Duration::from_secs(30),
        WallTime::from_micros(proposal),
        client.clone(),
    )
}

/// The same claim as the attempt of a wait.
pub(crate) fn in_turn(claim: &Claim) -> Claim {
    claim.clone().with_wait(Wait::Queued)
}

pub(crate) fn held(claim: &Claim, fence: Fence) -> Held {
    Held {
        claim: Arc::new(claim.clone()),
        fence,
    }
}

pub(crate) fn fence(attempt: Result<Attempt, Error>) -> Fence {
    match attempt {
        Ok(Attempt::Granted(grant)) => grant.fence,
        other => panic!("not granted: {other:?}"),
    }
}

pub(crate) fn is_busy(attempt: Result<Attempt, Error>) -> bool {
    match attempt {
        Ok(Attempt::Granted(_)) => false,
        Ok(Attempt::Busy(_)) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Asks until the lock is granted.
pub(crate) async fn wait_for(store: &dyn Store, claim: &Claim) -> Fence {
    let give_up = Instant::now() + TIMEOUT;
    loop {
        match store.acquire(claim).await {
            Ok(Attempt::Granted(grant)) => return grant.fence,
            Ok(Attempt::Busy(busy)) if Instant::now() > give_up => panic!("still {busy:?}"),
            Ok(Attempt::Busy(_)) => store.wait(claim).await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Ends the wait of `claim`.
pub(crate) async fn leave(store: &dyn Store, claim: &Claim) {
    store.leave(claim);
    store.flush().await;
}

pub(crate) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

/// The machine may be slow; what has not happened by then never will.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
