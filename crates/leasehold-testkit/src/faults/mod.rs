//! Faults of the network between a store and its server, for any protocol over TCP. With the feature `internal`, also
//! faults of stores, and the judges of their effects.

#[cfg(feature = "internal")]
mod crash_injector;
#[cfg(feature = "internal")]
mod faulty_store;
#[cfg(feature = "internal")]
mod findings;
#[cfg(feature = "internal")]
mod history;
#[cfg(feature = "internal")]
mod outages;
#[cfg(feature = "internal")]
mod protected_resource;
mod proxy;
#[cfg(feature = "internal")]
mod worker;

#[cfg(feature = "internal")]
#[doc(hidden)]
pub use {
    crash_injector::CrashInjector,
    faulty_store::{Fault, FaultyStore, StoreCall},
    findings::Findings,
    history::{Entry, History, Hold},
    outages::Outages,
    protected_resource::{ProtectedResource, ResourceClient},
    worker::Workers,
};

pub use proxy::{Cut, NetworkFault, Proxy};
