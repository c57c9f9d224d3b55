//! Starts real servers to try Leasehold on: `leasehold-servers [COUNT | postgres | etcd | zookeeper]`, COUNT being of
//! Redis servers. They run until Ctrl-C or SIGTERM, or until standard input is closed.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]
#![forbid(unsafe_code)]

use std::any::Any;
use std::process::ExitCode;

use leasehold_testkit::servers::{EtcdServer, PostgresServer, RedisSet, Zookeeper};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: leasehold-servers [COUNT | postgres | etcd | zookeeper], COUNT being 1 to 31 Redis servers \
                     (default 5)";

/// What to start.
enum Kind {
    Redis(usize),
    Postgres,
    Etcd,
    Zookeeper,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "postgres" => Some(Self::Postgres),
            "etcd" => Some(Self::Etcd),
            "zookeeper" => Some(Self::Zookeeper),
            count => {
                let count = count.parse().ok();
                count
                    .filter(|count| (1..=31).contains(count))
                    .map(Self::Redis)
            }
        }
    }

    /// Starts the servers. They end when the value is dropped.
    fn start(self) -> (String, Box<dyn Any>) {
        match self {
            Self::Redis(count) => {
                let servers = RedisSet::start(count);
                for server in servers.iter() {
                    println!("{}  (pid {})", server.url(), server.pid());
                }
                (servers.urls().join(","), Box::new(servers))
            }
            Self::Postgres => {
                let server = PostgresServer::start();
                (server.url(), Box::new(server))
            }
            Self::Etcd => {
                let server = EtcdServer::start();
                let url = format!("etcd://127.0.0.1:{}", server.port());
                (url, Box::new(server))
            }
            Self::Zookeeper => {
                let server = Zookeeper::start();
                (server.url(), Box::new(server))
            }
        }
    }
}

fn main() -> ExitCode {
    let kind = match std::env::args().nth(1) {
        None => Some(Kind::Redis(5)),
        Some(text) => Kind::parse(&text),
    };
    let Some(kind) = kind else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    // Catches signals before the first server starts, so that no server outlives this program and leaves
    // its directory behind.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = runtime.and_then(|runtime| runtime.block_on(serve(kind)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("leasehold-servers: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(kind: Kind) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (url, servers) = kind.start();
    println!("export LEASEHOLD_STORE={url}");
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
