//! What a library reports about itself, as tests see it: metrics and spans.

mod recorder;
mod witness;

pub use recorder::TestRecorder;
pub use witness::{SeenEvent, SeenSpan, Witness};
