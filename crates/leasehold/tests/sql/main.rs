//! The statements of the manual's page on fencing, exactly as written, on real databases.
#![allow(missing_docs, reason = "tests name themselves")]
#![allow(
    clippy::unwrap_used,
    reason = "in a test's helpers a failure is the test's failure"
)]

mod postgres;
mod sqlite;

/// Returns the statement of the page that begins with `words`.
fn statement(words: &str) -> String {
    let page = include_str!("../../src/manual/fencing.rs");
    let page: Vec<&str> = page
        .lines()
        .map(|line| line.strip_prefix("//!").unwrap_or_default().trim())
        .collect();
    let blocks = page.split(|line| line.starts_with("```"));
    let mut found =
        blocks.filter(|block| block.first().is_some_and(|line| line.starts_with(words)));
    let statement = found
        .next()
        .unwrap_or_else(|| panic!("no statement {words} …"));
    assert!(found.next().is_none(), "two statements {words} …");
    statement.join("\n")
}

/// Takes a new total, a fence and an id.
fn update() -> String {
    statement("UPDATE invoice")
}

fn create() -> String {
    statement("CREATE TABLE leasehold_fence")
}

/// Takes a resource and a fence.
fn claim() -> String {
    statement("INSERT INTO leasehold_fence")
}
