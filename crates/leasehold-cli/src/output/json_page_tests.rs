use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::election::LeaderChange;
use leasehold::env::{Env, SystemEntropy};
use leasehold::look::{BreakRecord, Owner};
use leasehold::memory::MemoryStore;
use leasehold::{Client, Error, ErrorKind, Fence};
use serde_json::Value;

use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::leader_text;
use crate::output::locks::wait::Wait;
use crate::output::message::Message;
use crate::output::once_answer::OnceAnswer;
use crate::runtime::runtime;

/// The events of the table under `heading` on the page, each with its fields.
fn documented(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let quoted = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let row = |line: &str| {
        let mut cells = line.split('|').skip(1);
        let names = quoted(cells.next().unwrap());
        let fields: BTreeSet<String> = quoted(cells.next().unwrap()).into_iter().collect();
        names.into_iter().map(move |name| (name, fields.clone()))
    };
    rows.flat_map(row).collect()
}

/// One message of each kind.
fn messages<'a>(
    failure: &'a Failure,
    guards: &'a leasehold::GuardSet,
    record: &'a BreakRecord,
) -> Vec<Message<'a>> {
    let (lock, store, name, after) = ("x", "s", "x", Duration::from_secs(1));
    let answer = OnceAnswer {
        key: "x",
        outcome: "committed",
        fence: 1,
        exit_code: 0,
        stdout: (0, false),
        stderr: (0, false),
        kept_for_ms: None,
    };
    vec![
        Message::Notice("n"),
        Message::Warning("w"),
        Message::Waiting(Wait {
            lock,
            holders: &[],
            position: None,
            outage: None,
            so_far: after,
        }),
        Message::Acquired {
            lock,
            guards,
            store,
            after,
        },
        Message::Released {
            lock,
            held: after,
            code: ExitCode::SUCCESS,
        },
        Message::StillHeld {
            lock,
            until: WallTime::from_micros(1),
            reason: "r",
        },
        Message::Nested {
            lock,
            fence: 1,
            store,
        },
        Message::Lost { lock, reason: "r" },
        Message::Leads {
            name,
            fence: Fence::MAX,
            value: "v",
        },
        Message::Campaigns { name, after },
        Message::Broken { lock, record },
        Message::Once(answer),
        Message::Error(failure),
        Message::End(ExitCode::SUCCESS),
    ]
}

/// Fails to compile when a kind of message is added: then add it to [`messages`] and to the page.
fn is_known(message: &Message<'_>) -> bool {
    match message {
        Message::Notice(_)
        | Message::Warning(_)
        | Message::ServerWarning(_)
        | Message::Waiting(_)
        | Message::Acquired { .. }
        | Message::Released { .. }
        | Message::StillHeld { .. }
        | Message::Nested { .. }
        | Message::Lost { .. }
        | Message::Leads { .. }
        | Message::Campaigns { .. }
        | Message::Broken { .. }
        | Message::Once(_)
        | Message::Error(_)
        | Message::End(_) => true,
    }
}

#[test]
fn page_names_every_event_and_field() {
    let client = Client::new(MemoryStore::new());
    let guards = runtime()
        .unwrap()
        .block_on(client.lock_all(["x"]).acquire());
    let guards = guards.unwrap();
    let by = Env::default().this_process(None);
    let (owner, at) = (
        Owner::random(by.id, &SystemEntropy),
        WallTime::from_micros(1),
    );
    let record = BreakRecord::new(owner, Some(Fence::MAX), by, at);
    let failure = Failure::usage("no");
    let messages = messages(&failure, &guards, &record);
    assert!(messages.iter().all(is_known));
    let mut objects: Vec<Value> = messages.iter().map(Message::json).collect();
    let unknown = LeaderChange::Unknown(Error::new(ErrorKind::NoQuorum, "r"));
    let changes = [LeaderChange::Nobody, unknown];
    objects.extend(changes.iter().map(|change| leader_text::json("x", change)));
    let printed: BTreeMap<String, BTreeSet<String>> = objects
        .iter()
        .map(|object| {
            let fields = object.as_object().unwrap().keys().cloned();
            let common = ["version", "time", "event"];
            let own = fields.filter(|field| !common.contains(&&**field));
            (object["event"].as_str().unwrap().to_owned(), own.collect())
        })
        .collect();
    assert_eq!(printed, documented("Events"));
}
