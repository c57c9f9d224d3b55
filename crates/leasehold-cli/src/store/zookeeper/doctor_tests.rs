use leasehold::ErrorKind;

use super::*;
use crate::output::finding::Verdict;

fn facts(mode: &str) -> Result<ServerFacts, Error> {
    Ok(ServerFacts {
        version: Some("3.8.4".into()),
        mode: Some(mode.into()),
        took: Duration::from_millis(1),
    })
}

fn down() -> Result<ServerFacts, Error> {
    Err(Error::new(ErrorKind::Unreachable, "no connection"))
}

fn found(servers: Vec<Result<ServerFacts, Error>>) -> Examination {
    let names = (1..).map(|number| format!("zk{number}:2181"));
    Examination {
        root: "/locks".into(),
        has_login: false,
        is_encrypted: true,
        is_local: false,
        servers: names.zip(servers).collect(),
        session: Ok(SessionFacts {
            asked: Some(Duration::from_secs(10)),
            shortest: Duration::from_secs(4),
            longest: Duration::from_secs(40),
            root_exists: true,
            missing_right: None,
        }),
    }
}

fn verdict(found: &Examination, check: &str) -> (Verdict, String) {
    let report = report("ZooKeeper".into(), found);
    let of_members = report.members.iter().flat_map(|member| &member.checks);
    let mut all = report.checks.iter().chain(of_members);
    let finding = all.find(|finding| finding.check == check);
    let finding = finding.unwrap_or_else(|| panic!("no {check}"));
    (finding.verdict, finding.found.clone())
}

fn three() -> Examination {
    found(vec![facts("leader"), facts("follower"), facts("follower")])
}

#[test]
fn healthy_ensemble_is_green() {
    let report = report("ZooKeeper".into(), &three());
    assert_eq!(
        report.verdict(),
        Verdict::Green,
        "{}",
        report.text(true, false)
    );
    assert_eq!(report.majority, Some((3, 2)));
}

#[test]
fn broken_ensembles_are_red() {
    let two_leaders = vec![facts("leader"), facts("leader"), facts("follower")];
    for (servers, check, shown) in [
        (vec![facts("follower"), down(), down()], "quorum", "1 of 3"),
        (
            vec![facts("standalone"), facts("standalone")],
            "members",
            "standalone",
        ),
        (two_leaders, "members", "2 servers say"),
    ] {
        let (verdict, text) = verdict(&found(servers), check);
        assert_eq!(verdict, Verdict::Red);
        assert!(text.contains(shown), "{text}");
    }
    for (servers, check) in [
        (vec![facts("standalone")], "members"),
        (vec![facts("leader"), facts("follower"), down()], "quorum"),
    ] {
        assert_eq!(verdict(&found(servers), check).0, Verdict::Yellow);
    }
}

#[test]
fn each_problem_has_a_finding() {
    let mut old = three();
    if let Ok(facts) = &mut old.servers[0].1 {
        facts.version = Some("3.6.2".into());
        facts.mode = None;
        facts.took = Duration::from_millis(51);
    }
    assert_eq!(verdict(&old, "version").0, Verdict::Red);
    for check in ["versions", "role", "round_trip"] {
        assert_eq!(verdict(&old, check).0, Verdict::Yellow, "{check}");
    }
    let mut plain = three();
    plain.is_encrypted = false;
    assert_eq!(verdict(&plain, "encryption").0, Verdict::Yellow);
    plain.session = Err(Error::new(ErrorKind::Refused, "the login failed"));
    assert_eq!(
        verdict(&plain, "session"),
        (Verdict::Red, "the login failed".into())
    );
}

#[test]
fn session_limits_and_rights_are_compared() {
    let mut short = three();
    let Ok(session) = &mut short.session else {
        panic!()
    };
    session.longest = Duration::from_secs(8);
    session.missing_right = Some(("/locks".into(), "setAcl /locks world:anyone:cdrwa".into()));
    let (timeout, text) = verdict(&short, "timeout");
    assert_eq!(
        (timeout, text.as_str()),
        (
            Verdict::Yellow,
            "sessions of 4s to 8s; the URL asks for 10s"
        )
    );
    assert_eq!(verdict(&short, "rights").0, Verdict::Red);
}
