//! Work in etcd that takes effect only while the lock is held.

use leasehold::Key;
use leasehold_etcd::EtcdStore;
use leasehold_testkit::servers::EtcdServer;

use crate::{client, lock, url};

#[tokio::test]
async fn transaction_of_a_former_holder_has_no_effect() {
    let server = EtcdServer::start();
    let client = client(&url(&server));
    let store = EtcdStore::new(&url(&server)).unwrap();
    let work = |key: &str, revision: &str| {
        let mut command = server.etcdctl_command(&["txn"]);
        let text = format!("create(\"{key}\") = \"{revision}\"\n\nput state done\n\n\n\n");
        command.stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped());
        let mut running = command.spawn().unwrap();
        std::io::Write::write_all(&mut running.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let output = running.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let guard = lock(&client, "job").acquire().await.unwrap();
    let name = Key::new("job").unwrap();
    let key = store.holder_key(&name, guard.fence()).await;
    let key = key.unwrap().unwrap();
    let shown = server.etcdctl(&["get", &key, "--write-out=fields"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let line = shown
        .lines()
        .find(|line| line.starts_with("\"CreateRevision\""));
    let revision = line.unwrap().rsplit(' ').next().unwrap();
    assert!(work(&key, revision).starts_with("SUCCESS"));
    guard.release().await.unwrap();
    assert!(work(&key, revision).starts_with("FAILURE"));
    // The next guard of the client uses the key again.
    let next = lock(&client, "job").acquire().await.unwrap();
    let again = store.holder_key(&name, next.fence()).await;
    assert_eq!(again.unwrap().unwrap(), key);
    assert!(work(&key, revision).starts_with("FAILURE"));
}
