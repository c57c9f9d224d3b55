//! What a library reports about itself, as tests see it: metrics and spans.

mod recorder;
mod trace_recorder;

pub use recorder::TestRecorder;
pub use trace_recorder::{SeenEvent, SeenSpan, TraceRecorder};
