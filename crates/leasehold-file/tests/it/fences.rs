use std::fs;

use leasehold::{ErrorKind, Fence};

use crate::store_fixture::StoreFixture;

#[tokio::test]
async fn fences_exceed_the_last_and_the_proposal() {
    let mut fixture = StoreFixture::new();
    assert_eq!(fixture.pass("deploy", 1000).await, 1001);
    assert_eq!(fixture.pass("deploy", 1000).await, 1002);
    // The counter outlives the store.
    fixture.store = fixture.another_store();
    assert_eq!(fixture.pass("deploy", 0).await, 1003);
    assert_eq!(fixture.pass("deploy", 5000).await, 5001);
    assert_eq!(fixture.pass("other", 0).await, 1);
}

#[tokio::test]
async fn wrong_clock_uses_up_no_fences() {
    let fixture = StoreFixture::new();
    let error = fixture
        .refused(&fixture.request("deploy", Fence::MAX.get() - 1))
        .await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(fixture.pass("deploy", 0).await, 1);
}

#[tokio::test]
async fn the_greatest_fence_is_not_overrun() {
    let fixture = StoreFixture::new();
    fixture.pass("deploy", 0).await;
    let path = fixture.lock_file("deploy");
    let mut bytes = fs::read(&path).unwrap();
    bytes[44..52].copy_from_slice(&Fence::MAX.get().to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..52]);
    bytes[52..56].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let error = fixture.refused(&fixture.request("deploy", 0)).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("remove the file"), "{error}");
}
