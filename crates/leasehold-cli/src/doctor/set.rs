//! Pure: what the servers of a store are to each other.

use std::time::Duration;

use super::finding::{Finding, Verdict};
use super::restart;
use super::scene::{Out, Scene, Server};
use super::server::{self, Place};
use crate::shortage::{NOT_FORMED, whole_seconds};

/// A day: a clock that is further off proposes fences that are refused.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// From which on this machine's clock is worth a word, in microseconds.
const OFF: i64 = 1_000_000;

/// The checks of the store as a whole.
pub(super) fn of_store(scene: &Scene) -> Vec<Finding> {
    let mut findings = vec![members(scene), quorum(scene)];
    findings.extend(generation(scene));
    findings.extend(own_clock(scene));
    findings
}

/// All checks of the server in this place.
pub(super) fn of_server(scene: &Scene, place: usize) -> Vec<Finding> {
    let server = &scene.servers[place];
    let mut findings = match &server.found {
        Err(error) => return server::of_unreachable(error),
        Ok(found) => {
            let penalty = scene.penalty();
            let is_set = scene.is_set();
            server::judge(found, Place { is_set, penalty })
        }
    };
    findings.extend(clock(scene, server));
    findings.extend(same_server(scene, place));
    findings.extend(card(scene, place));
    if !scene.is_unformed {
        // Before it is formed no server counts, and none can be lost.
        findings.push(counts(server, &findings));
        findings.extend(restart::restart(scene, place));
    }
    findings
}

fn members(scene: &Scene) -> Finding {
    let count = scene.servers.len();
    let three = "leasehold init with three or five independent servers";
    match count {
        1 => {
            let why = "if it fails over or loses its data, a lock is granted twice";
            Finding::yellow("members", "one server", why, three)
        }
        2 => {
            let why =
                "if one fails there are no locks, and cards and clocks are not held to the rules";
            Finding::yellow("members", "two servers", why, three)
        }
        _ if count.is_multiple_of(2) => {
            let why = format!("{} may fail, as of {}", (count - 1) / 2, count - 1);
            let remedy = "leasehold members add, or remove, one server";
            Finding::yellow("members", format!("{count} servers"), why, remedy)
        }
        _ => {
            let may_fail = (count - 1) / 2;
            Finding::green(
                "members",
                format!("{count} servers, of which {may_fail} may fail"),
            )
        }
    }
}

fn quorum(scene: &Scene) -> Finding {
    let (counting, needed) = (scene.counting(), scene.needed());
    let text = format!(
        "{counting} of {} count, {needed} are needed",
        scene.servers.len()
    );
    if counting >= needed {
        return Finding::green("quorum", text);
    }
    let why = "no lock is granted, and none renewed";
    if scene.is_unformed {
        return Finding::red(
            "quorum",
            format!("{text}: {NOT_FORMED}"),
            why,
            "leasehold init",
        );
    }
    let remedy = match enough_again(scene) {
        Some(again) => format!("wait: enough count in {}", whole_seconds(again)),
        None => "see what is red at the servers".into(),
    };
    Finding::red("quorum", text, why, remedy)
}

/// After how long a majority counts, if it takes nothing but time.
fn enough_again(scene: &Scene) -> Option<Duration> {
    let outs = scene.servers.iter().filter_map(|it| it.out.as_ref());
    let mut spans: Vec<Duration> = outs.filter_map(|out| out.again).collect();
    spans.sort_unstable();
    let lacking = scene.needed().checked_sub(scene.counting() + 1)?;
    spans.get(lacking).copied()
}

fn generation(scene: &Scene) -> Option<Finding> {
    let cards = scene
        .servers
        .iter()
        .filter_map(|it| Some((it.id.as_str(), it.card()?)));
    let mut known: Vec<(u64, &str)> = cards.map(|(id, card)| (card.generation, id)).collect();
    known.sort_unstable();
    let ((least, behind), (most, ahead)) = (known.first()?, known.last()?);
    if !scene.is_set() || scene.is_unformed {
        return None;
    }
    if least == most {
        return Some(Finding::green("generation", format!("{most} on all cards")));
    }
    let text = format!("{least} on the card of {behind}, {most} on that of {ahead}");
    let why =
        "a change of the set was broken off, and clients of either list are refused somewhere";
    let remedy = "repeat leasehold members add or remove as it was called last";
    Some(Finding::yellow("generation", text, why, remedy))
}

fn own_clock(scene: &Scene) -> Option<Finding> {
    let off = scene.median()?.saturating_neg();
    let whose = if scene.servers.len() == 1 {
        "the server's"
    } else {
        "the servers'"
    };
    let text = format!("this machine's clock is {} {whose}", beside(off));
    if off.abs() >= DAY {
        let why = "locks are refused to a client whose clock is a day off";
        return Some(Finding::red(
            "own_clock",
            text,
            why,
            "let chrony or ntpd set the clocks",
        ));
    }
    if off.abs() > OFF {
        let why =
            "after a server lost its counters, the order of fences rests on the clients' clocks";
        return Some(Finding::yellow(
            "own_clock",
            text,
            why,
            "let chrony or ntpd set the clocks",
        ));
    }
    Some(Finding::green("own_clock", text))
}

fn beside(micros: i64) -> String {
    let span = Duration::from_micros(micros.unsigned_abs());
    let word = if micros < 0 { "behind" } else { "ahead of" };
    format!("{span:.1?} {word}")
}

fn clock(scene: &Scene, server: &Server) -> Option<Finding> {
    if !scene.is_set() {
        return None;
    }
    let off = scene.clock_off(server)?;
    let span = Duration::from_micros(off.unsigned_abs());
    let tolerance = scene.set.clock_tolerance;
    let text = format!(
        "{} the servers' median, within {tolerance:?} allowed",
        beside(off)
    );
    let remedy = "let chrony or ntpd set its clock";
    if scene.has_wrong_clock(server) {
        let text = format!(
            "{} the servers' median, {tolerance:?} are allowed",
            beside(off)
        );
        let why = "with such a clock it does not count";
        return Some(Finding::red("clock", text, why, remedy));
    }
    if span > tolerance / 2 {
        let why = "a little more, and it does not count";
        return Some(Finding::yellow("clock", text, why, remedy));
    }
    Some(Finding::green("clock", text))
}

fn same_server(scene: &Scene, place: usize) -> Option<Finding> {
    if scene.servers.len() == 1 {
        return None;
    }
    let run = &scene.servers[place].presence()?.run;
    let others = scene.servers.iter().enumerate();
    let twin = others
        .filter(|(other, _)| *other != place)
        .find(|(_, other)| other.presence().is_some_and(|it| it.run == *run));
    Some(match twin {
        None => Finding::green("same_server", "no other address leads to it"),
        Some((_, twin)) => Finding::red(
            "same_server",
            format!("is the same server as {}", twin.id),
            "two votes of one server are no majority: they fail and forget together",
            "name each server once; behind a proxy or NAT give their own addresses",
        ),
    })
}

fn card(scene: &Scene, place: usize) -> Option<Finding> {
    let server = &scene.servers[place];
    let presence = server.presence()?;
    match (&presence.card, scene.is_set()) {
        (None, false) => None,
        // `rights` says so.
        (None, true) if server.hides_its_card() => None,
        (Some(card), false) if card.is_formed() => {
            let text = format!("belongs to a set: {}", card.set);
            let why =
                "a client that uses it by itself knows nothing of the set's locks, and is refused";
            Some(Finding::red(
                "card",
                text,
                why,
                "name all servers of the set; if it is no more, DEL leasehold:card",
            ))
        }
        (Some(_), false) => None,
        (None, true) if scene.is_unformed => Some(Finding::yellow(
            "card",
            "none",
            "the set is not formed",
            "leasehold init",
        )),
        (None, true) => Some(Finding::yellow(
            "card",
            "none, beside others that have one",
            "it lost its data, or was never in the set",
            if scene.can_restore() {
                "nothing: the next client that takes a lock gives it one".to_owned()
            } else {
                format!(
                    "start the servers that do not answer; if they cannot come back: leasehold \
                     members readmit {}",
                    server.id
                )
            },
        )),
        (Some(card), true) if card.set == scene.set => {
            if let Some(claimed) = claimed(scene, place, card.generation) {
                return Some(claimed);
            }
            let text = format!("generation {} of {}", card.generation, card.set);
            Some(Finding::green("card", text))
        }
        (Some(card), true) => Some(Finding::red(
            "card",
            format!(
                "its card (generation {}) says {}",
                card.generation, card.set
            ),
            format!("this client says {}, and is refused", scene.set),
            "give all clients the list and limits of the card; leasehold members changes them",
        )),
    }
}

/// Whether the card of another server puts this one into another set.
fn claimed(scene: &Scene, place: usize, generation: u64) -> Option<Finding> {
    let id = &scene.servers[place].id;
    let others = scene.servers.iter().enumerate();
    let mut others = others.filter(|(other, _)| *other != place);
    let (by, theirs) = others.find_map(|(_, other)| {
        let theirs = other.card()?;
        let claims = theirs.claims(id, &scene.set, generation);
        claims.then_some((&other.id, theirs))
    })?;
    Some(Finding::red(
        "card",
        format!(
            "it is in two sets: by its card (generation {generation}) in this one, by that of {by} \
             (generation {}) in {}",
            theirs.generation, theirs.set
        ),
        "both could grant the same lock: it counts for neither",
        format!(
            "stop the clients of the wrong set; if that is the one of {by}: DEL leasehold:card there"
        ),
    ))
}

fn counts(server: &Server, others: &[Finding]) -> Finding {
    let Some(Out { why, again }) = &server.out else {
        return Finding::green("counts", "its answers count");
    };
    match again {
        Some(again) => {
            let text = format!("not for {}: {why}", whole_seconds(*again));
            Finding::yellow("counts", text, "fewer others may fail meanwhile", "wait")
        }
        None if server.found.as_ref().is_ok_and(|it| it.presence.is_err()) => {
            let text = format!("not: {why}");
            Finding::red("counts", text, "it grants nothing", "do what it says")
        }
        None if others.iter().any(|it| it.verdict == Verdict::Red) => Finding::red(
            "counts",
            format!("not: {why}"),
            "it grants nothing",
            "see what is red above",
        ),
        None => {
            let text = format!("not yet: {why}");
            let remedy = "use it: clients note what is new on its card, and it counts later";
            Finding::yellow("counts", text, "fewer others may fail meanwhile", remedy)
        }
    }
}
