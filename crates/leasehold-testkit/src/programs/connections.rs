//! The paths between the clients and the servers of a program.

use super::operation::{PathFault, millis};
use crate::faults::{NetworkFault, Proxy};

/// The paths of one client: one to each server.
#[derive(Debug)]
pub(crate) struct Connections(Vec<Proxy>);

impl Connections {
    pub(crate) fn to(servers: &[u16]) -> Self {
        Self(servers.iter().copied().map(Proxy::to).collect())
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.0.iter().map(Proxy::port).collect()
    }

    /// The paths that a fault names: to one server, or to all.
    fn chosen(&self, server: Option<u8>) -> impl Iterator<Item = &Proxy> {
        let count = self.0.len();
        let chosen = server.map(|server| usize::from(server) % count.max(1));
        let all = self.0.iter().enumerate();
        let all = all.filter(move |(number, _)| chosen.is_none_or(|chosen| *number == chosen));
        all.map(|(_, proxy)| proxy)
    }

    pub(crate) fn begin(&self, server: Option<u8>, fault: PathFault) {
        for proxy in self.chosen(server) {
            match fault {
                PathFault::Cut => proxy.cut(),
                PathFault::LateRequests => proxy.hold_requests(),
                PathFault::SlowAnswers(by) => proxy.set(NetworkFault::SlowAnswers(millis(by))),
                PathFault::SlowRequests(by) => {
                    proxy.set(NetworkFault::SlowRequests(millis(by)));
                }
                PathFault::Mute => proxy.set(NetworkFault::Mute),
                PathFault::Frozen => proxy.set(NetworkFault::Frozen),
                PathFault::HalfOpen => proxy.set(NetworkFault::HalfOpen),
                PathFault::Refusing => proxy.set(NetworkFault::Refusing),
            }
        }
    }

    /// The middle of a fault: late requests outlive their connections, and answers that were slow do not come at all.
    pub(crate) fn advance(&self, server: Option<u8>, fault: PathFault) {
        for proxy in self.chosen(server) {
            match fault {
                PathFault::LateRequests => proxy.close_held(),
                PathFault::SlowAnswers(_) => proxy.set(NetworkFault::Mute),
                _ => {}
            }
        }
    }

    pub(crate) fn end(&self, server: Option<u8>, fault: PathFault) {
        for proxy in self.chosen(server) {
            match fault {
                PathFault::Cut => {}
                PathFault::LateRequests => proxy.deliver_requests(),
                _ => {
                    proxy.set(NetworkFault::None);
                    if fault == PathFault::HalfOpen {
                        proxy.cut();
                    }
                }
            }
        }
    }
}
