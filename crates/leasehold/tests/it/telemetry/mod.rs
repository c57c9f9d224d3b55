//! What a client reports about itself: metrics and spans.
#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot go on fails, and one test runs all of them"
)]

mod documented;
mod losses;
mod metrics;
mod spans;
mod told;
