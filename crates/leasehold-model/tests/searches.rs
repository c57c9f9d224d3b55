//! The design keeps its promises in every state within the bounds, and each rule that is left out breaks one.

use leasehold_model::table::{Row, SMALL};

/// Searches, and returns whether the searches saw what must be possible.
fn check(rows: impl Iterator<Item = &'static Row>) -> bool {
    let mut is_seen = false;
    for row in rows {
        let found = row.search(50_000_000);
        assert!(found.is_complete || !row.is_kept, "{row:?} {found:?}");
        assert_eq!(found.history.is_none(), row.is_kept, "{row:?} {found:#?}");
        is_seen |= found.is_seen;
    }
    is_seen
}

#[test]
fn design_keeps_every_promise() {
    assert!(check(SMALL.iter().filter(|row| row.is_kept)));
}

#[test]
fn each_rule_is_needed() {
    check(SMALL.iter().filter(|row| !row.is_kept));
}
