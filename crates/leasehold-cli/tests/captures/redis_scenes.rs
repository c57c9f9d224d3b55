//! The scenes, and the moments that are drawn.

use leasehold_testkit::servers::{RedisServer, RedisSet, until};

use crate::fixture::Fixture;
use crate::keeping::keep;
use crate::picture::{Pane, Picture};
use crate::redactions::Redactions;
use crate::shell::Shell;

/// A short TTL, so that the lease is renewed soon: the fence is shown from then on.
const RUN: &str = "leasehold run --ttl 10s deploy -- ./deploy.sh";

#[test]
fn two_shells() {
    const ROWS: u16 = 12;
    let server = RedisServer::start();
    let fixture = Fixture::new(server.url());
    let mut drawn = Redactions::default();
    // So wide that what is cut, or goes on in the next line, is so between two words.
    let sizes = [("first", 98), ("second", 98), ("third", 97)];
    let [mut first, mut second, mut third] =
        sizes.map(|(name, columns)| fixture.shell(name, (columns, ROWS)));

    first.types(RUN);
    first.shows("deploying…");
    second.types(RUN);
    waits_as(&mut second, "1st");
    let waiting = second.screen(&mut drawn);
    third.types("leasehold run -n deploy -- ./deploy.sh; echo \"exit code $?\"");
    third.prompts();
    fixture.let_deploy("first");
    first.prompts();
    second.shows("deploying…");
    fixture.let_deploy("second");
    second.prompts();

    let pane = |caption, screen| Pane { caption, screen };
    let panes = vec![
        pane("shell 1", first.screen(&mut drawn)),
        pane("shell 2, while shell 1 has the lock", waiting),
        pane(
            "shell 3, which does not want to wait",
            third.screen(&mut drawn),
        ),
        pane("shell 2, when shell 1 is done", second.screen(&mut drawn)),
    ];
    let picture = Picture {
        title: "Shells that ask for one lock",
        description: "Shell 1 runs ./deploy.sh under the lock deploy. Shell 2 asks for the same lock: it waits, \
                      says for how long, in which place and for whom, and runs when shell 1 is done. Shell 3 does \
                      not want to wait (-n): it is told who holds the lock, with the exit code 75.",
        panes,
    };
    keep("two-shells.svg", &picture);
}

#[test]
fn queue() {
    const SIZE: (u16, u16) = (124, 12);
    let server = RedisServer::start();
    let fixture = Fixture::new(server.url());
    let [mut holder, mut next, mut last, mut report] =
        ["holder", "next", "last", "report"].map(|name| fixture.shell(name, SIZE));
    report.types("leasehold run --ttl 10s report -- ./deploy.sh");
    report.shows("deploying…");
    holder.types(RUN);
    holder.shows("deploying…");
    next.types(RUN);
    waits_as(&mut next, "1st");
    last.types(RUN);
    waits_as(&mut last, "2nd");
    fixture.until_told(&["status", "report"], (", fence ", 1));
    fixture.until_told(&["waiters", "deploy"], ("exclusive  ", 2));

    let mut onlooker = fixture.shell("onlooker", SIZE);
    for command in [
        "leasehold ls",
        "leasehold waiters deploy",
        "leasehold status migrate",
    ] {
        onlooker.types(command);
    }
    onlooker.prompts();
    let screen = onlooker.screen(&mut Redactions::default());
    let picture = Picture {
        title: "Who holds a lock, and who waits for it",
        description: "leasehold ls lists the locks deploy and report: since when each is held, its fence, when its \
                      lease expires, and its holder. leasehold waiters lists the two waiters of deploy in their \
                      order. leasehold status says that migrate is free.",
        panes: vec![Pane {
            caption: "another shell",
            screen,
        }],
    };
    keep("queue.svg", &picture);
}

#[test]
fn doctor() {
    const SIZE: (u16, u16) = (122, 140);
    let mut servers = RedisSet::start_each(5, &RedisServer::builder().durable());
    let named = servers.urls().into_iter().zip(1..);
    let urls: Vec<String> = named
        .map(|(url, number)| format!("{url}?id=redis-{number}"))
        .collect();
    let fixture = Fixture::new(urls.join(","));
    fixture.prepare(&["init"]);
    let mut named = servers.iter_mut().skip(1);
    named.next().unwrap().kill();
    let evicting = named.nth(1).unwrap();
    for (setting, value) in [("maxmemory", "64mb"), ("maxmemory-policy", "allkeys-lru")] {
        evicting.command(&["CONFIG", "SET", setting, value]);
    }
    let report = || {
        let mut shell = fixture.shell("unused", SIZE);
        shell.types("leasehold doctor; echo \"exit code $?\"");
        shell.prompts();
        shell.screen(&mut Redactions::default())
    };
    // On a stalled machine servers seem far away, or their clocks wrong. Then the test asks again.
    let mut screen = report();
    until("a report of a machine that did not stall", || {
        let is_calm = screen.lines.iter().all(|line| is_calm(&line.text()));
        if !is_calm {
            screen = report();
        }
        is_calm
    });
    let mut part = Part::default();
    let picture = Picture {
        title: "What is wrong with five servers",
        description: "leasehold doctor checks a quorum of five servers: three have a vote, three are needed. \
                      Of redis-1 sixteen checks are shown: all are green, except that it should not be restarted \
                      now (yellow), because two others have no vote. redis-2 is red: no connection; start the \
                      server. redis-4 is red: when its memory is full, it deletes locks; \
                      CONFIG SET maxmemory-policy noeviction. The exit code is 78.",
        panes: vec![Pane {
            caption: "a quorum of five servers, two of them with problems",
            screen: screen.abridged(|_, line| part.shows(line)),
        }],
    };
    keep("doctor.svg", &picture);
}

/// Whether `line` of a doctor's report is not about time, or finds nothing wrong with it.
fn is_calm(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (verdict, check) = (words.next(), words.next());
    let is_about_time = matches!(check, Some("round_trip" | "clock" | "own_clock"));
    !is_about_time || verdict == Some("green")
}

/// Which part of a doctor's report is being read.
#[derive(Debug, Default)]
struct Part {
    server: String,
    check: String,
    /// Whether the line before was empty: then this one names a server.
    is_next: bool,
}

impl Part {
    /// Whether `line`, the next one, is drawn: each colour once with all of its words, and what is red.
    fn shows(&mut self, line: &str) -> bool {
        let mut words = line.split_whitespace();
        if self.is_next {
            line.clone_into(&mut self.server);
            self.check.clear();
        } else if !line.starts_with("   ") {
            words.nth(1).unwrap_or_default().clone_into(&mut self.check);
        }
        self.is_next = line.is_empty();
        match self.server.as_str() {
            "redis-3" | "redis-5" => line.is_empty(),
            "redis-4" => line == self.server || self.check == "eviction",
            _ => true,
        }
    }
}

/// Waits until the status line says for how long this one waits, in which `place`, and all of the holder.
#[track_caller]
fn waits_as(shell: &mut Shell, place: &str) {
    shell.until(&format!("waiting as the {place}"), |written| {
        let status = written.rsplit("leasehold: waiting for ").next();
        status.is_some_and(|status| {
            let holder =
                format!("s for lock \"deploy\", {place} in the queue, held by leasehold (pid ");
            status.starts_with(|c: char| c.is_ascii_digit())
                && status.contains(&holder)
                && status.contains(", fence ")
                // A picture must not show half a line.
                && status.ends_with("\x1b[?7h")
        })
    });
}

#[test]
fn a_stall_is_told_from_an_illness() {
    for line in [
        "  green  clock       x",
        "  red    eviction    x",
        "redis-1",
        "",
        "     -> y",
    ] {
        assert!(is_calm(line), "{line}");
    }
    for line in [
        "  yellow round_trip  x",
        "  red    clock       x",
        "  yellow own_clock   x",
    ] {
        assert!(!is_calm(line), "{line}");
    }
}

#[test]
fn unhealthy_server_shows_only_its_problems() {
    let mut part = Part::default();
    let lines = [
        ("$ leasehold doctor", true),
        ("", true),
        ("redis-3", false),
        ("  green  role        primary", false),
        ("", true),
        ("redis-4", true),
        ("  green  role        primary", false),
        ("  red    eviction    x", true),
        ("                     why", true),
        ("  red    counts      a long line that", false),
        ("goes on", false),
        ("", false),
        ("2 green", true),
    ];
    for (line, is_drawn) in lines {
        assert_eq!(part.shows(line), is_drawn, "{line}");
    }
}
