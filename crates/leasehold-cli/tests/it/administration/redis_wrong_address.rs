//! Addresses of a port that expects something else.

use std::net::TcpListener;

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
fn silent_port_without_tls_names_redis() {
    // A plain Redis waits for the end of the line, and is as silent.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let sandbox = Sandbox::on(&[format!("rediss://:secret@{address}")]);
    let hint = format!("no TLS handshake from {address}: does the server speak TLS on this port?");
    let remedy = format!("use redis://{address}");
    for args in ["run -n x true", "status x"] {
        let refused = sandbox.run(args);
        refused.fails(69, &[&hint, &remedy]);
        assert!(!refused.stderr.contains("secret"), "{refused:?}");
    }
    for args in ["members", "doctor"] {
        let shown = sandbox.run(args);
        assert!(shown.stdout.contains(&hint), "{shown:?}");
    }
}

/// Two servers of a quorum, and another server in place of the third.
#[test]
fn wrong_list_of_servers_ends_the_wait() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    let other = RedisServer::start();
    let mut urls = servers.urls();
    urls[2] = other.url();
    let refused = sandbox.run_at(&urls, "run x true");
    refused.fails(78, &["belongs to another quorum"]);
    assert!(!refused.stderr.contains("waiting"), "{refused:?}");
    let warnings = refused.stderr.matches("warning: ").count();
    assert!(warnings <= 1, "{refused:?}");
}

#[test]
fn one_member_alone_answers_no_question() {
    let (sandbox, servers) = Sandbox::on_quorum(3);
    let one = &servers.urls()[..1];
    for args in [
        "status x",
        "status --check x",
        "wait -w 1s x",
        "ls",
        "waiters x",
        "break --yes x",
    ] {
        let refused = sandbox.run_at(one, args);
        refused.fails(78, &["belongs to another quorum"]);
    }
}

#[test]
fn address_of_etcd_at_another_server_is_doubted() {
    let server = RedisServer::start();
    let address = format!("127.0.0.1:{}", server.port());
    let sandbox = Sandbox::on(&[format!("etcd://{address}")]);
    let refused = sandbox.run("run -n x true");
    refused.fails(69, &[&address, "is it the port for clients of etcd?"]);
    let nothing = Sandbox::on(&["etcd://127.0.0.1:1".into()]).run("run -n x true");
    nothing.fails(69, &["127.0.0.1:1: ", "Connection refused"]);
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
            .fails(77, &["demands a client certificate", "cert=FILE"]);
    }
}
