//! The JSON documents, compared with `docs/json.md`.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_testkit::servers::{RedisServer, until};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::harness::Sandbox;

type Fields = BTreeSet<String>;

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    std::fs::read_to_string(page).unwrap()
}

/// The rows of the table under `heading`, each with its fields.
fn documented(page: &str, heading: &str) -> BTreeMap<String, Fields> {
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let quoted = |cell: &str| -> Vec<String> {
        let words = cell.split('`').skip(1).step_by(2);
        words.map(str::to_owned).collect()
    };
    let row = |line: &str| {
        let mut cells = line.split('|').skip(1);
        let names = quoted(cells.next().unwrap());
        let fields: Fields = quoted(cells.next().unwrap()).into_iter().collect();
        names.into_iter().map(move |name| (name, fields.clone()))
    };
    rows.flat_map(row).collect()
}

fn fields(object: &Value) -> Fields {
    let names = object.as_object().unwrap().keys().cloned();
    names
        .filter(|name| name != "version" && name != "time")
        .collect()
}

/// Returns what a command prints, and asserts that it has a version and a time.
fn document(sandbox: &Sandbox, args: &str) -> Value {
    let ended = sandbox.run(args);
    let line = ended.stdout.lines().next();
    let line = line.unwrap_or_else(|| panic!("{args}: {ended:?}"));
    let object: Value = serde_json::from_str(line).unwrap();
    assert_eq!(object["version"], 1, "{args}: {object}");
    assert!(object["time"].is_string(), "{args}: {object}");
    object
}

#[test]
fn page_names_every_document_and_field() {
    let (sandbox, _server) = Sandbox::on_redis();
    let mut printed: BTreeMap<String, Fields> = BTreeMap::new();
    let mut objects: BTreeMap<String, Fields> = BTreeMap::new();
    let mut add = |command: &str, object: &Value| {
        printed.insert(command.into(), fields(object));
    };
    let acquired = document(&sandbox, "acquire --json --ttl 60s --handle-file handle x");
    add("acquire", &acquired);
    add(
        "renew",
        &document(&sandbox, "renew --json --handle-file handle"),
    );
    let waiter = sandbox.start("run -v x true");
    waiter.says("1st in the queue");
    let status = document(&sandbox, "status --json x");
    objects.insert("holder".into(), fields(&status["holders"][0]));
    objects.insert("waiter".into(), fields(&status["waiters"][0]));
    objects.insert("client".into(), fields(&status["waiters"][0]["client"]));
    add("status", &status);
    objects.insert("last_run".into(), fields(&last_run(&sandbox)));
    let listing = document(&sandbox, "ls --json");
    objects.insert("lock".into(), fields(&listing["locks"][0]));
    add("ls", &listing);
    add("waiters", &document(&sandbox, "waiters --json x"));
    add(
        "break --dry-run",
        &document(&sandbox, "break --json x --dry-run"),
    );
    let fence = &acquired["fence"];
    let broken = document(&sandbox, &format!("break --json x --now --fence {fence}"));
    objects.insert("break".into(), fields(&broken["broken"]));
    add("break", &broken);
    add(
        "release",
        &document(&sandbox, "release --json --handle-file handle"),
    );
    waiter.wait().succeeds();
    add("doctor", &document(&sandbox, "doctor --json"));
    let files = format!("--store file://{}", sandbox.path("locks").display());
    add("gc", &document(&sandbox, &format!("gc --json {files}")));
    add(
        "fence check",
        &document(&sandbox, "fence check --json --high-water mark 7"),
    );
    let holder = sandbox.start("hold --ignore-stdin y");
    until("the lock is held", || !sandbox.is_free("y"));
    let leader = sandbox.start(&["elect", "e", "--", "sleep", "1000"]);
    until("a leader is announced", || {
        sandbox.run("elect --observe --once e").code() == 0
    });
    let led = document(&sandbox, "elect --observe --once --json e");
    objects.insert("leader".into(), fields(&led["leader"]));
    add("elect --observe", &led);
    leader.signal(Signal::SIGTERM);
    leader.wait();
    holder.signal(Signal::SIGTERM);
    let held = holder.wait();
    add(
        "hold",
        &serde_json::from_str(held.stdout.lines().next().unwrap()).unwrap(),
    );

    add("once --list", &document(&sandbox, "once --list --json"));
    add("once --show", &document(&sandbox, "once --show --json key"));
    add(
        "once --forget",
        &document(&sandbox, "once --forget --json key"),
    );
    add_quorum(&mut printed, &mut objects);
    assert_eq!(printed, documented(&page(), "Documents"));
    assert_eq!(objects, documented(&page(), "Objects"));
}

fn last_run(sandbox: &Sandbox) -> Value {
    sandbox.run("run --record-end z true").succeeds();
    document(sandbox, "status --json z")["last_run"].clone()
}

/// Adds the documents about a quorum.
fn add_quorum(printed: &mut BTreeMap<String, Fields>, objects: &mut BTreeMap<String, Fields>) {
    let mut add = |command: &str, object: &Value| {
        printed.insert(command.into(), fields(object));
    };
    let (quorum, _servers) = Sandbox::on_quorum(3);
    add("init", &document(&quorum, "init --json"));
    let members = document(&quorum, "members --json");
    objects.insert("member".into(), fields(&members["members"][0]));
    add("members", &members);
    let id = members["members"][0]["id"].as_str().unwrap();
    add(
        "members readmit",
        &document(&quorum, &format!("members readmit --json {id}")),
    );
    let new = RedisServer::start();
    let replace = format!("members replace --dry-run --json {id} {}", new.url());
    add("members replace", &document(&quorum, &replace));
    let added = document(&quorum, &format!("members add --json {}", new.url()));
    add("members add", &added);
    add("members remove", &added);
}
