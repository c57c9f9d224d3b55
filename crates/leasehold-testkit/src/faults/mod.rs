//! Faults of a store, for tests of programs that use locks, and faults of the network between a store and its server, for
//! any protocol over TCP.

#[cfg_attr(
    not(feature = "internal"),
    allow(
        dead_code,
        unreachable_pub,
        reason = "only our own tests let a client crash"
    )
)]
mod crash_injector;
mod faulty_store;
#[cfg(feature = "internal")]
mod findings;
#[cfg(feature = "internal")]
mod history;
#[cfg(feature = "internal")]
mod protected_resource;
mod proxy;
#[cfg(feature = "internal")]
mod worker;

#[cfg(feature = "internal")]
#[doc(hidden)]
pub use {
    crash_injector::CrashInjector,
    findings::Findings,
    history::{Entry, History, Hold},
    protected_resource::{ProtectedResource, ResourceClient},
};

pub use faulty_store::{Fault, FaultyStore, StoreCall};
pub use proxy::{Cut, NetworkFault, Proxy};
