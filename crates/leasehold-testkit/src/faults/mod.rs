//! What goes wrong between a client and its servers, done on purpose, and the judges of what came
//! of it.

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
