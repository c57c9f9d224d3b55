//! The table of promises in docs/stores says what each store returns from `guarantees`. With `SNAPSHOTS=overwrite`, the
//! test writes it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use leasehold::store::{Expiry, Store};
use leasehold_etcd::EtcdStore;
use leasehold_file::FileStore;
use leasehold_postgres::PostgresStore;
use leasehold_redis::RedisStore;
use leasehold_zookeeper::ZooKeeperStore;

const BEGIN: &str = "<!-- promises: written by the test `promises` -->\n";
const END: &str = "<!-- end of the promises -->";

/// The stores of the page. None of them is asked anything.
fn stores(folder: &Path) -> Vec<(&'static str, Arc<dyn Store>)> {
    let redis = |hosts: &[&str]| -> Arc<dyn Store> { Arc::new(RedisStore::new(hosts).unwrap()) };
    vec![
        ("files", Arc::new(FileStore::open(folder).unwrap())),
        ("one Redis", redis(&["redis://a"])),
        ("two Redis servers", redis(&["redis://a", "redis://b"])),
        (
            "a quorum of Redis servers",
            redis(&["redis://a", "redis://b", "redis://c"]),
        ),
        (
            "PostgreSQL",
            Arc::new(PostgresStore::new("postgres://u@a").unwrap()),
        ),
        ("etcd", Arc::new(EtcdStore::new("etcd://a").unwrap())),
        (
            "ZooKeeper",
            Arc::new(ZooKeeperStore::new("zk://a").unwrap()),
        ),
    ]
}

fn row(name: &str, store: &dyn Store) -> String {
    let promises = store.guarantees();
    let yes = |is: bool| if is { "yes" } else { "no" };
    let has_leases = promises.expiry == Expiry::Lease;
    format!(
        "| {name} | `{:?}` | `{:?}` | `{:?}` | {} | {} | {} | {} |\n",
        promises.exclusion,
        promises.expiry,
        promises.order,
        yes(promises.shared),
        yes(promises.permits),
        yes(has_leases),
        yes(has_leases),
    )
}

#[test]
fn table_has_the_promises_of_each_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stores/README.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(END).expect("where the table ends");
    let mut table = String::from(
        "| store | exclusion | expiry | order | shared | permits | delay | handles |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (name, store) in stores(folder.path()) {
        table += &row(name, &*store);
    }
    let written = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
        fs::write(&path, &written).unwrap();
    } else {
        assert_eq!(page, written);
    }
}
