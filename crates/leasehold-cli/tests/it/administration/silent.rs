//! A server that accepts connections and answers nothing.

use std::net::TcpListener;
use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::LockRequest;

use crate::support::harness::Sandbox;

/// How long the call takes at a server that is silent. A busy machine may delay it, so it has three tries.
fn took(sandbox: &Sandbox, args: &str) -> Duration {
    let once = |_| {
        let began = SystemClock.now();
        let ended = sandbox.run(args);
        assert_eq!(ended.code(), 69, "{args}: {ended:?}");
        SystemClock.now().since(began)
    };
    (0..3).map(once).min().unwrap()
}

#[test]
fn silent_server_is_left_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    for scheme in ["redis", "postgres", "etcd", "zookeeper"] {
        let sandbox = Sandbox::on(&[format!("{scheme}://{address}")]);
        for args in ["status x", "waiters x", "ls", "wait x"] {
            let took = took(&sandbox, &format!("{args} --timeout 300ms"));
            assert!(took < LockRequest::LIMIT_MAX, "{scheme} {args}: {took:?}");
        }
        // The members of a quorum have a second more to show their health.
        let took = took(&sandbox, "doctor --timeout 300ms");
        assert!(took < LockRequest::LIMIT_MAX, "{scheme} doctor: {took:?}");
    }
}
