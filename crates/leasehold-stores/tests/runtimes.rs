//! Calls from each kind of runtime: all end soon, on each store.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the threads and the runtimes of a caller"
)]

mod common;

use std::io::{self, Write as _};
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::Place;
use leasehold::{Client, blocking};
use tokio::runtime::{Builder, Runtime};

/// Far less than the TTL, and far more than a call takes.
const LIMIT: Duration = Duration::from_secs(15);

/// Runs `work` on a thread of its own, and fails if it does not end within [`LIMIT`].
fn in_time(what: &str, work: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let running = thread::spawn(move || {
        work();
        // The test may have failed meanwhile.
        let _ = done.send(());
    });
    match is_done.recv_timeout(LIMIT) {
        Ok(()) => running.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Disconnected) => running.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: no end within {LIMIT:?}"),
    }
}

/// Takes and releases locks: a new one, and one that was released a moment ago.
async fn pass(client: &Client) {
    for _ in 0..3 {
        let lock = client.lock("job");
        let guard = lock.try_acquire().await.unwrap().expect("a free lock");
        guard.release().await.unwrap();
    }
}

/// The same with calls that block.
fn pass_blocking(client: &Client) {
    let client = blocking::Client::from(client.clone());
    for _ in 0..3 {
        let lock = client.lock("job");
        let guard = lock.try_acquire().unwrap().expect("a free lock");
        guard.release().unwrap();
    }
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn without_io() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn multi_thread() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

fn calls_end_on_each_runtime(place: &Place) {
    let begin = |what: &str, work: fn(Client)| {
        let client = place.client();
        in_time(what, move || work(client));
    };
    begin("without a runtime", |client| {
        pollster::block_on(pass(&client));
        pass_blocking(&client);
    });
    begin("smol", |client| smol::block_on(pass(&client)));
    begin("entered, and never driven", |client| {
        let runtime = current_thread();
        let _entered = runtime.enter();
        pollster::block_on(pass(&client));
        pass_blocking(&client);
        assert!(runtime.metrics().num_alive_tasks() <= 1, "tasks pile up");
    });
    begin("driven, and then only entered", |client| {
        let runtime = current_thread();
        runtime.block_on(pass(&client));
        let _entered = runtime.enter();
        pollster::block_on(pass(&client));
        pass_blocking(&client);
    });
    begin("blocked from inside", |client| {
        for runtime in [current_thread(), multi_thread()] {
            runtime.block_on(async {
                pass(&client).await;
                pass_blocking(&client);
                pollster::block_on(pass(&client));
                pass(&client).await;
            });
        }
    });
    begin("blocked in a task", |client| {
        let busy = current_thread();
        busy.block_on(pass(&client));
        let (stop, stopped) = mpsc::channel::<()>();
        let blocked = thread::spawn(move || busy.block_on(async move { stopped.recv() }));
        current_thread().block_on(pass(&client));
        stop.send(()).unwrap();
        blocked.join().unwrap().unwrap();
    });
    begin("without I/O", |client| without_io().block_on(pass(&client)));
    begin("on threads without I/O", |client| {
        // The first socket panics there, and no thread reads until the panic is reported. A backtrace may take seconds.
        panic::set_hook(Box::new(|panic| {
            let _ = writeln!(io::stderr(), "{panic}");
        }));
        let mut builder = Builder::new_multi_thread();
        let threads = builder.worker_threads(1).enable_time().build().unwrap();
        threads.block_on(async {
            for _ in 0..3 {
                pass(&client).await;
            }
        });
    });
    begin("dropped", |client| {
        for _ in 0..3 {
            let runtime = current_thread();
            runtime.block_on(pass(&client));
            let guard = runtime.block_on(client.lock("job").acquire()).unwrap();
            drop(runtime);
            current_thread().block_on(guard.release()).unwrap();
        }
    });
}

macro_rules! on_each_store {
    ($($name:ident = $place:expr;)+) => {$(
        #[test]
        fn $name() {
            calls_end_on_each_runtime(&$place);
        }
    )+};
}

on_each_store! {
    calls_end_on_files = Place::files();
    calls_end_on_redis = Place::redis();
    calls_end_on_a_redis_quorum = current_thread().block_on(Place::quorum());
    calls_end_on_postgres = current_thread().block_on(Place::postgres());
    calls_end_on_etcd = Place::etcd();
    calls_end_on_zookeeper = Place::zookeeper();
}
