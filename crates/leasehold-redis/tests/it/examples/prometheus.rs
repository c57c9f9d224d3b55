//! The example `prometheus`, which `cargo test` builds.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use leasehold::telemetry::{METRICS, MetricKind};
use leasehold_testkit::servers::{LIMIT, RedisServer, until};

const PASSWORD: &str = "a-word-that-nobody-may-see";

/// The running example. Dropping the handle ends it.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(url: &str) -> (Example, String) {
    let tests = std::env::current_exe().unwrap();
    let example = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples/prometheus");
    assert!(
        example.exists(),
        "{} is not built: `cargo test -p leasehold-redis` builds it, with --test it does not",
        example.display()
    );
    let child = Command::new(example)
        .args([url, "0"])
        .stdout(Stdio::piped())
        .spawn();
    let mut example = Example(child.unwrap());
    let mut line = String::new();
    let stdout = example.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").expect("an address");
    let address = address.strip_suffix("/metrics").expect("its page");
    (example, address.to_owned())
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the value of the first series of `name` whose labels include `label`.
fn value(page: &str, name: &str, label: &str) -> Option<f64> {
    let series = page.lines().find(|line| {
        let labels = line.strip_prefix(name).filter(|rest| rest.starts_with('{'));
        labels.is_some_and(|labels| labels.contains(label))
    });
    series?.rsplit(' ').next()?.parse().ok()
}

#[test]
fn metrics_page_is_complete() {
    let server = RedisServer::builder().password(PASSWORD).start();
    let (_example, address) = start(&server.url());
    let mut page = String::new();
    until("two workers took turns", || {
        page = get(&address, "/metrics");
        let turns = value(&page, "leasehold_hand_over_seconds_count", "store");
        turns.is_some_and(|turns| turns >= 2.0)
    });
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    for metric in METRICS {
        let kind = match metric.kind {
            MetricKind::Histogram => "histogram",
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // There are no renewals, since each hold is short.
        if metric.name != leasehold::telemetry::RENEWAL.name {
            let line = format!("# TYPE {} {kind}\n", metric.name);
            assert!(page.contains(&line), "{line} {page}");
            let line = format!("# HELP {} {}\n", metric.name, metric.description);
            assert!(page.contains(&line), "{line} {page}");
        }
    }
    let store = format!("store=\"Redis 127.0.0.1:{}\"", server.port());
    for (name, label, least) in [
        ("leasehold_members", "state=\"trusted\"", 1.0),
        (
            "leasehold_acquire_wait_seconds_count",
            "outcome=\"granted\"",
            2.0,
        ),
        ("leasehold_hold_seconds_count", "end=\"released\"", 1.0),
        ("leasehold_contended_total", "store", 1.0),
        // An alert needs a series that starts at zero.
        ("leasehold_lost_total", "reason=\"taken\"", 0.0),
    ] {
        let told = value(&page, name, label).unwrap_or(-1.0);
        assert!(told >= least, "{name} {label}: {told}\n{page}");
    }
    let buckets = page.lines().filter(|line| line.contains("_bucket{"));
    assert!(buckets.clone().count() > 10, "{page}");
    assert!(buckets.clone().all(|line| line.contains(&store)), "{page}");
    assert!(!page.contains("example/turns"), "a lock is a label: {page}");
    assert!(!page.contains(PASSWORD), "{page}");
    assert!(get(&address, "/").starts_with("HTTP/1.1 404"));
}
