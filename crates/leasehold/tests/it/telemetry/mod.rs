//! What a client tells of itself: metrics and spans.

mod documented;
mod losses;
mod metrics;
mod spans;
mod told;
