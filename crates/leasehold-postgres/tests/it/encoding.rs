//! Databases that do not store every name.

use leasehold::store::LockRequest;
use leasehold::{Client, ErrorKind};
use leasehold_postgres::PostgresStore;
use leasehold_testkit::servers::PostgresServer;

#[tokio::test]
async fn name_outside_the_encoding_is_refused() {
    let server = PostgresServer::start();
    server.sql("create database latin encoding 'LATIN1' locale 'C' template template0;");
    let url = server.url().replace("/postgres", "/latin");
    let store = PostgresStore::new(url).expect("a URL");
    store.init().await.expect("the schema");
    let found = store.examine(LockRequest::LIMIT_MAX).await.expect("facts");
    assert!(!found.stores_all_names(), "{found:?}");
    let client = Client::new(store);
    for (name, is_stored) in [("é", true), ("鍵", false)] {
        let taken = client.lock(name).acquire().await;
        match taken {
            Ok(guard) => drop(guard.release().await.expect("a release")),
            Err(error) => {
                assert!(!is_stored, "{error}");
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
                assert!(error.to_string().contains("UTF8"), "{error}");
            }
        }
    }
}
