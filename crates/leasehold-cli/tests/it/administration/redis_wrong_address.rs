//! Addresses of a port that expects something else.

use leasehold_testkit::servers::RedisServer;

use crate::support::harness::Sandbox;

#[test]
fn plain_address_of_a_tls_port_names_rediss() {
    let server = RedisServer::builder().tls().start();
    let plain = server.tls_url().replace("rediss://", "redis://");
    let refused = Sandbox::on(&[plain]).run("run -n x true");
    refused.fails(69, &["if this port expects TLS, use rediss://"]);
    assert!(!refused.stderr.contains("vote"), "{refused:?}");
}

#[test]
fn demanded_client_certificate_is_77() {
    let settings = RedisServer::builder().tls();
    let server = settings.directive("tls-auth-clients", "yes").start();
    let url = format!(
        "{}?ca={}",
        server.tls_url(),
        server.ca().certificate().display()
    );
    let sandbox = Sandbox::on(&[url]);
    for args in ["run -n x true", "run x true", "status x"] {
        sandbox
            .run(args)
            .fails(77, &["client certificate, which is not supported yet"]);
    }
}
