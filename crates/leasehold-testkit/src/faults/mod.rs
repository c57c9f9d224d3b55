//! Deliberate failures between a client and its servers, and the judges of their effects.

mod crash_injector;
mod faulty_store;
mod findings;
mod history;
mod outages;
mod protected_resource;
mod proxy;

pub use crash_injector::CrashInjector;
pub use faulty_store::{Fault, FaultyStore, StoreCall};
pub use findings::Findings;
pub use history::{Entry, History, Hold};
pub use outages::Outages;
pub use protected_resource::{ProtectedResource, ResourceClient};
pub use proxy::{NetworkFault, Proxy};
