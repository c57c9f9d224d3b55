//! Deliberate failures between a client and its servers, and the judges of their effects.

mod crash_injector;
mod faulty_store;
mod findings;
mod gate;
mod history;
mod outages;
mod proxy;

pub use crash_injector::CrashInjector;
pub use faulty_store::{Call, Fault, FaultyStore};
pub use findings::Findings;
pub use gate::{Gate, GateClient};
pub use history::{Entry, History, Hold};
pub use outages::Outages;
pub use proxy::{NetworkFault, Proxy};
