//! What only PostgreSQL has: its schema, its rights, its poolers, and its rows.

use leasehold_testkit::servers::{PgBouncer, PostgresServer};
use serde_json::json;

use crate::administration::doctor::{check, verdict};
use crate::support::harness::Sandbox;
use crate::support::program::assert_fields;
use crate::support::pty::OnTerminal;

#[test]
fn schema_is_created_once_by_init() {
    let server = PostgresServer::start();
    let sandbox = Sandbox::on(&[server.url()]);
    let remedy = [
        "the schema \"leasehold\" does not exist",
        "`leasehold init`",
    ];
    for call in [
        "run -n x true",
        "run x true",
        "elect x true",
        "once x true",
        "once --show x",
        "status x",
        "ls",
        "waiters x",
        "wait x",
        "break --fence 1 x",
    ] {
        sandbox.run(call).fails(78, &remedy);
    }
    sandbox
        .run("init --max-ttl 5s")
        .fails(64, &["are for a quorum"]);
    sandbox.run("run x true").fails(78, &remedy);
    let first = sandbox.run("init").succeeds().stdout;
    assert!(
        first.starts_with("created the schema in postgres://127.0.0.1:"),
        "{first}"
    );
    let second = sandbox.run("init").succeeds().stdout;
    assert!(second.starts_with("nothing to do: "), "{second}");
    let third = sandbox.run("init --json").json();
    assert_fields(&third, json!({"schema_version": 4, "version_before": 4}));
    sandbox.run("run -n x true").succeeds();
    sandbox.run("members").fails(64, &["is no quorum"]);
}

#[test]
fn doctor_names_what_is_wrong_and_its_remedy() {
    let server = PostgresServer::start();
    let sandbox = Sandbox::on(&[server.url()]);
    let report = |sandbox: &Sandbox| sandbox.run("doctor --json").json_of_any();
    assert_eq!(verdict(&report(&sandbox), "schema"), "red");
    sandbox.run("init").succeeds();
    let found = report(&sandbox);
    for id in [
        "reachable",
        "schema",
        "rights",
        "role",
        "session",
        "clock",
        "failover",
    ] {
        assert_eq!(verdict(&found, id), "green");
    }
    // The server of the tests does not wait for the disk.
    assert_eq!(verdict(&found, "durability"), "red");
    let remedy = &check(&found, "durability")["remedy"];
    assert_eq!(remedy, "set fsync = on in postgresql.conf");

    server.sql("create role app login password 'app-secret';");
    let login = format!("tester:{}@", PostgresServer::PASSWORD);
    let app = Sandbox::on(&[server.url().replace(&login, "app:app-secret@")]);
    app.run("run -n x true").fails(77, &["leasehold doctor"]);
    server.sql("create role other login password 'app-secret';");
    let url = server.url().replace(&login, "other:app-secret@");
    let other = Sandbox::on(&[format!("{url}?schema=other")]);
    let refused = other.run("init");
    refused.fails(77, &["or the right CREATE, which `leasehold init` needs"]);
    assert!(!refused.stderr.contains("GRANT"), "{refused:?}");
    for _ in 0..2 {
        let report = report(&app);
        let rights = check(&report, "rights");
        if rights["verdict"] == "red" {
            let grants = rights["remedy"].as_str().unwrap();
            server.sql(&format!("{grants};"));
        }
    }
    assert_eq!(verdict(&report(&app), "rights"), "green");
    app.run("run -n x true").succeeds();
}

#[test]
fn doctor_soon_reports_a_frozen_server() {
    let (sandbox, server) = Sandbox::on_postgres();
    server.freeze();
    let mut terminal = OnTerminal::leasehold(&sandbox, "doctor");
    terminal.shows("checking the store");
    terminal.shows("no connection within 2s");
    assert_eq!(terminal.exit_code(), 69);
    server.thaw();
}

#[test]
fn password_may_be_in_the_environment() {
    let (sandbox, server) = Sandbox::on_postgres();
    let login = format!("tester:{}@", PostgresServer::PASSWORD);
    let bare = Sandbox::on(&[server.url().replace(&login, "tester@")]);
    bare.run("status x").fails(77, &["password missing"]);
    for variable in ["PGPASSWORD", "LEASEHOLD_PASSWORD"] {
        let right = (variable, PostgresServer::PASSWORD);
        bare.start_with(right, "run -n x true").wait().succeeds();
        assert!(sandbox.is_free("x"));
        let wrong = (variable, "wrong-secret");
        let refused = bare.start_with(wrong, "run -n x true").wait();
        refused.fails(77, &["password authentication failed"]);
        assert!(!refused.stderr.contains("wrong-secret"), "{refused:?}");
    }
}

#[test]
fn pooler_in_transaction_mode_is_refused() {
    let (_sandbox, server) = Sandbox::on_postgres();
    let passes = "ignore_startup_parameters = options";
    let pooler = PgBouncer::start(&server, "transaction", passes);
    let pooled = Sandbox::on(&[pooler.url()]);
    pooled
        .run("run -n x true")
        .fails(77, &["pool_mode = session"]);
    let report = pooled.run("doctor --json").json_of_any();
    assert_eq!(verdict(&report, "session"), "red");
    let pooler = PgBouncer::start(&server, "session", passes);
    let pooled = Sandbox::on(&[pooler.url()]);
    pooled.run("run -n x true").succeeds();
    let report = pooled.run("doctor --json").json_of_any();
    assert_eq!(verdict(&report, "session"), "green");
}

/// The first host of the URL is a standby.
#[test]
fn primary_is_found_among_several_hosts() {
    let (sandbox, server) = Sandbox::on_postgres();
    let standby = PostgresServer::builder()
        .standby_of(server.port(), "second")
        .start();
    sandbox
        .run_at(&[standby.url()], "run -n x true")
        .fails(69, &["is a standby"]);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}/", standby.port(), server.port());
    let both = standby
        .url()
        .replace(&format!("127.0.0.1:{}/", standby.port()), &hosts);
    sandbox.run_at(&[both], "run -n x true").succeeds();
}

#[test]
fn unusable_addresses_are_refused() {
    let sandbox = Sandbox::new();
    let two = ["postgres://a/x".to_owned(), "postgres://b/x".to_owned()];
    sandbox
        .run_at(&two, "run x true")
        .fails(64, &["are no quorum"]);
    let list = ["postgres://a/x,postgres://b/x".to_owned()];
    sandbox
        .run_at(&list, "run x true")
        .fails(64, &["are no quorum"]);
    let odd = ["postgres://u:secret@a/x?sslmode=prefer".to_owned()];
    let refused = sandbox.run_at(&odd, "run x true");
    refused.fails(64, &["sslmode \"prefer\""]);
    assert!(!refused.stderr.contains("secret"), "{refused:?}");
    let gone = ["postgres://u@127.0.0.1:1/x".to_owned()];
    sandbox
        .run_at(&gone, "run -n x true")
        .fails(69, &["127.0.0.1:1"]);
    sandbox.run_at(&gone, "doctor").fails(69, &[]);
}

#[test]
fn postgres_shows_the_fence_in_its_table() {
    let (sandbox, server) = Sandbox::on_postgres();
    let holder = sandbox.hold("x", "pid");
    let fence = server.sql("select fence from leasehold.lock where name = 'x';");
    assert_eq!(fence, [sandbox.fence("pid").to_string()]);
    sandbox.finish(holder);
}
