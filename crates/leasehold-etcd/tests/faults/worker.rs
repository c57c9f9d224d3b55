use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::blocking::{Client, Lock};
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_etcd::EtcdStore;
use leasehold_testkit::faults::ResourceClient;

use crate::ensemble::{TTL, pause};

/// How long a worker waits for the lock before it reports that it did not get it.
const WAIT: Duration = Duration::from_secs(5);

/// How long a worker stays inside at least.
const STAY: Duration = Duration::from_millis(10);

/// What a worker does, and with what.
pub(crate) struct Plan {
    pub(crate) number: usize,
    pub(crate) url: String,
    pub(crate) resource: PathBuf,
    pub(crate) stop: Arc<AtomicBool>,
}

/// Adds one to the record again and again, each time under the lock, and reports everything to the resource.
pub(crate) fn work(plan: &Plan) {
    let client = Client::new(EtcdStore::new(&plan.url).unwrap());
    let mut resource = ResourceClient::connect(&plan.resource).unwrap();
    let lock = client.lock("the-record").ttl(TTL).wait(WAIT);
    while !plan.stop.load(Ordering::SeqCst) {
        round(plan.number, &lock, &mut resource).unwrap();
    }
}

fn round(number: usize, lock: &Lock, resource: &mut ResourceClient) -> io::Result<()> {
    let asked = SystemClock.now();
    let guard = match lock.acquire() {
        Ok(guard) => guard,
        Err(error) => return resource.refused(number, &error.to_string()),
    };
    let granted = SystemClock.now();
    let fence = guard.fence().get();
    let stay = resource.granted(number, fence, asked, granted)?.max(STAY);
    let plain = resource.plain_read()?;
    let base = resource.read(fence)?;
    let mut valid_until = None;
    let end = SystemClock.now() + stay;
    loop {
        let now = SystemClock.now();
        if !guard.is_valid() {
            break;
        }
        valid_until = Some(now);
        if now >= end {
            resource.plain_add_one(plain)?;
            break;
        }
        pause(STAY.min(end.since(now)));
    }
    // A program without this check would write now, and only the fence could stop it.
    if let Some(base) = base {
        resource.add_one(fence, base)?;
    }
    resource.left(fence, valid_until, SystemClock.now())?;
    // The grants to others show whether the lease was released.
    drop(guard.release());
    Ok(())
}
