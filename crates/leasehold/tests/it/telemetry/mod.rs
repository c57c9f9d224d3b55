//! What a client reports about itself: metrics and spans.
#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot go on fails, and one test runs all of them"
)]

mod documented;
mod events;
mod losses;
mod metered_fixture;
mod metrics;
mod spans;
