//! Resources that compare fences.

mod fence_gate;
mod fenced;
mod sequencer;

pub use fence_gate::FenceGate;
pub use fenced::Fenced;
pub use sequencer::Sequencer;
