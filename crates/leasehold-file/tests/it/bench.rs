use std::time::Instant;

use leasehold::Store;
use leasehold_file::FileStore;

use crate::world;

/// Prints how many times a second a free lock can be taken and given back, on the disk with the
/// build's target folder and in memory.
#[tokio::test]
// tidy: it measures, and has nothing to be wrong about.
#[ignore = "measures; run it by name with --ignored --nocapture"]
async fn acquire_and_release_per_second() {
    const CYCLES: u32 = 2000;
    let disk = std::env::current_exe().unwrap();
    for place in [disk.parent().unwrap(), "/dev/shm".as_ref()] {
        let dir = tempfile::tempdir_in(place).unwrap();
        let store = FileStore::open(dir.path()).unwrap();
        let client = world::client();
        let mut longest = std::time::Duration::ZERO;
        let began = Instant::now();
        for _ in 0..CYCLES {
            let began = Instant::now();
            let claim = world::claim(&client, "deploy", 0);
            world::fence(store.acquire(&claim).await);
            store.release(&claim).await.unwrap();
            longest = longest.max(began.elapsed());
        }
        let rate = f64::from(CYCLES) / began.elapsed().as_secs_f64();
        println!(
            "{}: {rate:.0} per second, longest {longest:?}",
            place.display()
        );
    }
}
