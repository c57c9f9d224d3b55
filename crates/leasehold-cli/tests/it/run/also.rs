//! Several locks as one, on files.

use leasehold_testkit::servers::until;
use serde_json::{Value, json};

use crate::support::harness::Sandbox;
use crate::support::program::{assert_fields, sh};

#[test]
fn all_locks_are_held_while_the_command_runs() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("b --also c --also a --also b", "held");
    let held = format!("is held by leasehold (pid {}", holder.pid());
    for name in ["a", "b", "c"] {
        let busy = sandbox.run(&format!("run -n {name} true"));
        busy.fails(75, &[&format!("lock {name:?} {held}")]);
    }
    let busy = sandbox.run("run -n 0 --also c --also d touch ran");
    busy.fails(75, &[&format!("lock \"c\" {held}")]);
    assert!(sandbox.is_free("0") && sandbox.is_free("d"));
    sandbox.finish(holder);
    for name in ["a", "b", "c"] {
        assert!(sandbox.is_free(name), "{name}");
    }
    assert!(!sandbox.path("ran").exists());
}

#[test]
fn the_command_is_told_the_fence_of_each() {
    let sandbox = Sandbox::new();
    let script = "echo \"$LEASEHOLD_NAME $LEASEHOLD_FENCE\"; echo \"$LEASEHOLD_FENCES\"";
    let odd = "it's \"odd\"";
    let mut args = sh("run b --also a", script);
    args.splice(4..4, ["--also".to_owned(), odd.to_owned()]);
    let ended = sandbox.run(&args);
    let (own, all) = ended.stdout.split_once('\n').unwrap();
    let all: Value = serde_json::from_str(all).unwrap();
    let names: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "b", odd]);
    assert_eq!(own, format!("b {}", all["b"]));
    assert!(names.iter().all(|name| all[name].is_u64()), "{all}");
    let single = sandbox.run(&sh("run x", script));
    let (own, all) = single.stdout.trim_end().split_once('\n').unwrap();
    let fence = own.strip_prefix("x ").unwrap();
    assert_eq!(all, format!("{{\"x\":{fence}}}"));
}

#[test]
fn waiter_names_its_lock_and_holds_earlier_ones() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("b", "held");
    let waiting = sandbox.start("run --json c --also b --also a true");
    waiting.says(r#""event":"waiting""#);
    until("a is held meanwhile", || !sandbox.is_free("a"));
    assert!(sandbox.is_free("c"));
    let text = sandbox.start("run -v d --also b true");
    let held = format!("held by leasehold (pid {}", holder.pid());
    text.says(&format!(r#"for lock "b", {held}"#));
    sandbox.let_go();
    text.wait().fails(0, &[]);
    let ended = waiting.wait();
    ended.fails(0, &[]);
    let events = ended.events();
    assert_eq!(events[0]["lock"], "b", "the one that is missing");
    assert_eq!(events[0]["holders"][0]["pid"], holder.pid());
    let acquired = &events[events.len() - 3];
    let fence = &acquired["fences"]["c"];
    assert_fields(
        acquired,
        json!({"event": "acquired", "lock": "c", "fence": fence}),
    );
    assert_eq!(acquired["fences"].as_object().unwrap().len(), 3);
}

#[test]
fn only_the_blocking_lock_is_named() {
    let sandbox = Sandbox::new();
    let reader = sandbox.hold("-s a", "reading");
    let holder = sandbox.hold("b", "held");
    let held = format!("lock \"b\" is held by leasehold (pid {}", holder.pid());
    let both = "run -n -s a --also b true";
    sandbox.run(both).fails(75, &[&held]);
    sandbox.let_go();
    assert_eq!((reader.wait().code(), holder.wait().code()), (0, 0));
    sandbox.run(both).fails(0, &[]);
}

#[test]
fn the_longest_hold_is_that_of_all() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run("run --max-hold 3s a --also b sleep 1000");
    // On a busy machine, both are lost when the command looks.
    ended.fails(76, &["lost lock \"", "\": --max-hold reached"]);
    assert!(sandbox.is_free("a") && sandbox.is_free("b"));
}
