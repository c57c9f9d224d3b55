//! Deliberate failures between a client and its servers, and the judges of their effects.

mod findings;
mod gate;
mod history;
mod outages;
mod proxy;

pub use findings::Findings;
pub use gate::{Gate, GateClient};
pub use history::{Entry, History, Hold};
pub use outages::Outages;
pub use proxy::{Proxy, Weather};
