//! Two workers take turns under one lock, and a page of metrics shows how that goes.
//!
//! ```sh
//! cargo run -p leasehold-redis --example prometheus -- redis://127.0.0.1:6379 9100
//! curl http://127.0.0.1:9100/metrics
//! ```
//!
//! The recorder comes first, because the client asks it for its metrics when the client is built. Port 0
//! takes any free port; the example prints the address. Ctrl-C ends it.
#![expect(clippy::print_stdout, reason = "it says where the page is")]

use std::error::Error;
use std::io;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::telemetry::{METRICS, MetricKind};
use leasehold::{Client, Guard};
use leasehold_redis::RedisStore;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Upper bounds of the histograms' buckets, in seconds. A round trip on a local network is well below the
/// first bound, and a wait that exceeds the last one is an outage.
const BUCKETS: [f64; 11] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0, 60.0,
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, port] = arguments.as_slice() else {
        return Err("usage: prometheus URL PORT".into());
    };
    let page = recorder()?.install_recorder()?;
    let client = Client::new(RedisStore::new([url])?);
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    println!("http://{}/metrics", listener.local_addr()?);
    tokio::select! {
        outcome = serve(&listener, &page) => outcome?,
        outcome = work(&client) => outcome?,
        outcome = work(&client) => outcome?,
    }
    Ok(())
}

/// The exporter, with the same buckets for all spans.
fn recorder() -> Result<PrometheusBuilder, Box<dyn Error>> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS {
        if metric.kind == MetricKind::Histogram {
            let name = Matcher::Full(metric.name.to_owned());
            builder = builder.set_buckets_for_metric(name, &BUCKETS)?;
        }
    }
    Ok(builder)
}

/// Works under the lock for a moment, again and again.
async fn work(client: &Client) -> Result<(), leasehold::Error> {
    let lock = client.lock("example/turns").ttl(Duration::from_secs(3));
    loop {
        let guard = lock.acquire().await?;
        // A lost lock does not end the loop: the loss is counted, and the next turn comes.
        let work = async |_: &Guard| client.pause(Duration::from_millis(20)).await;
        if let Ok(worked) = guard.run(work).await {
            worked?;
        }
    }
}

/// Answers one request after the other. Each scrape also includes the histograms' values since the previous
/// one.
async fn serve(listener: &TcpListener, page: &PrometheusHandle) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A client that is slow or leaves does not keep others waiting.
        let end = SystemClock.now() + Duration::from_secs(2);
        let _ = within(&SystemClock, end, answer(stream, page)).await;
    }
}

async fn answer(mut stream: TcpStream, page: &PrometheusHandle) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 1024];
        let length = stream.read(&mut part).await?;
        if length == 0 || request.len() > 8 * 1024 {
            return Ok(());
        }
        request.extend_from_slice(&part[..length]);
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", page.render())
    } else {
        ("404 Not Found", "the page is /metrics\n".to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
