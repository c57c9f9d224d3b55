//! What facts mean: one test for each finding that is not green.

mod files;
mod quorum;
mod server;

use std::time::Duration;

use leasehold::clock::WallTime;
use leasehold::store::{MemberStatus, RunId};
use leasehold::{Error, ErrorKind};
use leasehold_redis::{Examination, KeyCensus, Persistence, ServerFacts, Transport};

use super::finding::{Finding, Verdict};

/// A server without problems.
fn well(run: &str) -> Examination {
    let day = Duration::from_secs(86_400);
    let mut status = MemberStatus::new(RunId::new(run), WallTime::from_micros(1), day);
    status.durable = true;
    Examination {
        transport: Transport::Tls,
        user: "ann".into(),
        prefix: String::new(),
        accepts_eviction: false,
        speaks_resp3: true,
        server: Ok(ServerFacts {
            version: "7.2.4".into(),
            is_primary: true,
            is_cluster_node: false,
            max_memory: 0,
            eviction_policy: "noeviction".into(),
        }),
        status: Ok(status),
        persistence: Ok(Persistence {
            append_only: "yes".into(),
            append_fsync: "always".into(),
            no_fsync_on_rewrite: "no".into(),
            last_write_was_ok: true,
            replicas: 0,
        }),
        round_trips: [1, 2, 3].map(Duration::from_millis).to_vec(),
        clock_offset: Some(0),
        missing_rights: Vec::new(),
        refuses_locks: None,
        keys: Ok(KeyCensus {
            is_complete: true,
            ..KeyCensus::default()
        }),
    }
}

fn refused() -> Error {
    Error::new(ErrorKind::Refused, "the user \"ann\" lacks the right +x")
}

/// Asserts that `check` has this verdict, has advice unless it is green, and says `part`.
#[track_caller]
fn expect(findings: &[Finding], check: &str, verdict: Verdict, part: &str) {
    let found = findings.iter().find(|it| it.check == check);
    let found = found.unwrap_or_else(|| panic!("no {check} in {findings:?}"));
    assert_eq!(found.verdict, verdict, "{found:?}");
    let advice = found.advice.as_ref();
    assert_eq!(advice.is_none(), verdict == Verdict::Green, "{found:?}");
    let advice = advice.map(|advice| format!("; {} -> {}.", advice.why, advice.remedy));
    let text = format!("{}{}", found.found, advice.unwrap_or_default());
    assert!(text.contains(part), "no {part:?} in {text}");
}

#[track_caller]
fn green(findings: &[Finding], check: &str, part: &str) {
    expect(findings, check, Verdict::Green, part);
}

#[track_caller]
fn yellow(findings: &[Finding], check: &str, part: &str) {
    expect(findings, check, Verdict::Yellow, part);
}

#[track_caller]
fn red(findings: &[Finding], check: &str, part: &str) {
    expect(findings, check, Verdict::Red, part);
}

/// Asserts that there is no such check.
#[track_caller]
fn expect_none(findings: &[Finding], check: &str) {
    assert!(findings.iter().all(|it| it.check != check), "{findings:?}");
}

#[track_caller]
fn all_green(findings: &[Finding]) {
    let ill = findings.iter().find(|it| it.verdict != Verdict::Green);
    assert_eq!(ill, None);
}
