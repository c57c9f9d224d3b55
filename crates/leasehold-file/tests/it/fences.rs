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
async fn the_greatest_fence_is_not_overrun() {
    let fixture = StoreFixture::new();
    let last = Fence::MAX.get();
    let error = fixture.refused(&fixture.request("deploy", last)).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(fixture.pass("deploy", last - 1).await, last);
    let error = fixture.refused(&fixture.writer()).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("remove the file"), "{error}");
}
