//! Resources that compare fences.

mod fence_gate;
mod fenced;

pub use fence_gate::FenceGate;
pub use fenced::Fenced;
