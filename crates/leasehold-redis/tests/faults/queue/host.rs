use std::cell::RefCell;
use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::thread::Builder;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use leasehold::clock::{Clock, SystemClock};
use leasehold::{Client, Error, Lock};
use leasehold_testkit::faults::ResourceClient;
use tokio::sync::mpsc;

use super::fixture::store;
use super::{LOCK, TTL};
use leasehold_testkit::SecondProcess;

pub(crate) const VERB: &str = "--host";

/// At the resource, the numbers of a host's waits start at the host's number times this.
const WAITS_MAX: usize = 10_000;

/// Returns the host of a worker at the resource.
pub(super) fn host_of(worker: usize) -> usize {
    worker / WAITS_MAX
}

/// How long a holder stays by default.
const STAY: Duration = Duration::from_millis(10);

/// A process with one client. It waits for the lock as often as the test asks, and releases it soon.
#[derive(Debug)]
pub(super) struct Host {
    process: SecondProcess,
    /// How long each future wait will hold the lock.
    pub(super) stay: Duration,
}

impl Host {
    pub(super) fn start(number: usize, resource: &Path, urls: &[String]) -> Self {
        let own = [
            VERB.into(),
            number.to_string(),
            resource.display().to_string(),
        ];
        Self {
            process: SecondProcess::start(own.into_iter().chain(urls.iter().cloned())),
            stay: STAY,
        }
    }

    /// Starts `count` more waits.
    pub(super) fn wait(&mut self, count: usize) {
        let stay = self.stay.as_millis();
        self.process.tell(&format!("{count} {stay}"));
    }

    pub(super) fn pause(&self) {
        self.process.pause();
    }

    pub(super) fn resume(&self) {
        self.process.resume();
    }

    /// Kills it as in a crash. Its connections are closed when this returns.
    pub(super) fn kill(self) {
        self.process.kill();
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Ends its input, and waits until it ends.
    pub(super) fn finish(self) {
        self.process.finish();
    }
}

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let [number, resource, urls @ ..] = arguments else {
        panic!("a host needs a number, a resource and members: {arguments:?}")
    };
    let number: usize = number.parse().expect("a number");
    let client = Client::new(store(urls));
    let hall = Hall {
        lock: client.lock(LOCK).ttl(TTL),
        resource: RefCell::new(ResourceClient::connect(Path::new(resource)).expect("the resource")),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let waits = hall.serve(number * WAITS_MAX, orders());
    runtime.expect("a runtime").block_on(waits);
    ExitCode::SUCCESS
}

/// Receives orders of the test: how many more waits to start, and how long each of them stays.
fn orders() -> mpsc::UnboundedReceiver<(usize, Duration)> {
    let (speak, orders) = mpsc::unbounded_channel();
    let listening = Builder::new().spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let line = line.expect("a pipe");
            let (count, stay) = line.split_once(' ').expect("two numbers");
            let stay = Duration::from_millis(stay.parse().expect("milliseconds"));
            if speak
                .send((count.parse().expect("a number"), stay))
                .is_err()
            {
                return;
            }
        }
    });
    listening.expect("a thread");
    orders
}

/// What the waits share.
struct Hall {
    lock: Lock,
    resource: RefCell<ResourceClient>,
}

impl Hall {
    async fn serve(&self, first: usize, mut orders: mpsc::UnboundedReceiver<(usize, Duration)>) {
        let mut waits = FuturesUnordered::new();
        let mut next = first;
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    None => return,
                    Some((count, stay)) => {
                        waits.extend((next..next + count).map(|worker| self.wait(worker, stay)));
                        next += count;
                    }
                },
                Some(()) = waits.next() => {}
            }
        }
    }

    async fn wait(&self, worker: usize, stay: Duration) {
        if let Err(error) = self.hold_once(worker, stay).await {
            let told = self
                .resource
                .borrow_mut()
                .refused(worker, &error.to_string());
            told.expect("the resource");
        }
    }

    async fn hold_once(&self, worker: usize, stay: Duration) -> Result<(), Error> {
        let asked = SystemClock.now();
        let guard = self.lock.acquire().await?;
        let (granted, fence) = (SystemClock.now(), guard.fence().get());
        let told = self
            .resource
            .borrow_mut()
            .granted(worker, fence, asked, granted);
        let stay = told.expect("the resource").max(stay);
        SystemClock.sleep_until(granted + stay).await;
        let left = SystemClock.now();
        let valid_until = guard.is_valid().then_some(left);
        let told = self.resource.borrow_mut().left(fence, valid_until, left);
        told.expect("the resource");
        // If connections break, the client repeats the release in the background.
        let _ = guard.release().await;
        Ok(())
    }
}
