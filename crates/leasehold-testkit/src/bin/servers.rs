//! Starts real Redis servers to try Leasehold on: `leasehold-servers [COUNT]`. They run until Ctrl-C or
//! SIGTERM, or until standard input is closed.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]
#![forbid(unsafe_code)]

use std::process::ExitCode;

use leasehold_testkit::servers::RedisSet;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: leasehold-servers [COUNT], COUNT being 1 to 31 (default 5)";

fn main() -> ExitCode {
    let count = match std::env::args().nth(1) {
        None => Some(5),
        Some(text) => text.parse().ok().filter(|count| (1..=31).contains(count)),
    };
    let Some(count) = count else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    // Catches signals before the first server starts, so that no server outlives this program and leaves
    // its directory behind.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = runtime.and_then(|runtime| runtime.block_on(serve(count)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("leasehold-servers: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(count: usize) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let servers = RedisSet::start(count);
    for server in servers.iter() {
        println!("{}  (pid {})", server.url(), server.pid());
    }
    println!("export LEASEHOLD_STORE={}", servers.urls().join(","));
    let (closed, stdin_closed) = tokio::sync::oneshot::channel::<()>();
    std::thread::Builder::new().spawn(move || {
        // Standard input is closed, however reading ends.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(closed);
    })?;
    tokio::select! {
        _ = stdin_closed => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    drop(servers);
    Ok(())
}
