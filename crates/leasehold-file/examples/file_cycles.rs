//! Prints how many times a second a free lock can be taken and given back in a directory: the
//! current one, or those given as arguments.

use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold_file::FileStore;

const CYCLES: u32 = 2000;

#[expect(clippy::print_stdout, reason = "it is there to print")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut places: Vec<_> = std::env::args_os().skip(1).collect();
    if places.is_empty() {
        places.push(".".into());
    }
    for place in places {
        let directory = tempfile::tempdir_in(&place)?;
        let lock = Client::new(FileStore::open(directory.path())?).lock("cycles");
        let mut longest = Duration::ZERO;
        let began = SystemClock.now();
        for _ in 0..CYCLES {
            let asked = SystemClock.now();
            lock.acquire()?.release()?;
            longest = longest.max(SystemClock.now().since(asked));
        }
        let rate = f64::from(CYCLES) / SystemClock.now().since(began).as_secs_f64();
        println!(
            "{}: {rate:.0} per second, longest {longest:?}",
            place.display()
        );
    }
    Ok(())
}
