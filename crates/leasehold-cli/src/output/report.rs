use std::fmt::Write as _;

use leasehold::member::MemberId;
use serde_json::{Value, json};

use crate::output::colour::Style;
use crate::output::finding::{Finding, Verdict};

/// All findings of one call of `doctor`.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) store: String,
    /// How many servers have a vote, and how many are needed; `None` for files.
    pub(crate) majority: Option<(usize, usize)>,
    pub(crate) checks: Vec<Finding>,
    pub(crate) members: Vec<Subject>,
}

/// One server, with its findings.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) id: MemberId,
    pub(crate) checks: Vec<Finding>,
    pub(crate) facts: Value,
}

impl Report {
    /// The worst verdict.
    pub(crate) fn verdict(&self) -> Verdict {
        let verdicts = self.all().map(|finding| finding.verdict);
        verdicts.max().unwrap_or(Verdict::Green)
    }

    /// Whether a majority of the servers has a vote.
    pub(crate) fn has_majority(&self) -> bool {
        self.majority
            .is_none_or(|(counting, needed)| counting >= needed)
    }

    fn all(&self) -> impl Iterator<Item = &Finding> {
        let of_members = self.members.iter().flat_map(|member| &member.checks);
        self.checks.iter().chain(of_members)
    }

    pub(crate) fn json(&self) -> Value {
        let checks = |findings: &[Finding]| findings.iter().map(json_of).collect::<Vec<_>>();
        let members = self.members.iter().map(|member| {
            json!({
                "id": member.id.as_str(),
                "address": member.id.address(),
                "checks": checks(&member.checks),
                "facts": member.facts,
            })
        });
        json!({
            "store": self.store,
            "verdict": self.verdict().word(),
            "voting": self.majority.map(|(counting, _)| counting),
            "needed": self.majority.map(|(_, needed)| needed),
            "checks": checks(&self.checks),
            "members": members.collect::<Vec<_>>(),
        })
    }

    /// Returns the report for people: what is not green, the worst last, or with `all` everything.
    pub(crate) fn text(&self, all: bool, in_colour: bool) -> String {
        let mut text = format!("{}\n", self.heading());
        if all {
            self.checks
                .iter()
                .for_each(|it| lines(&mut text, it, None, in_colour));
            for member in &self.members {
                text += &format!("\n{}\n", member.id);
                member
                    .checks
                    .iter()
                    .for_each(|it| lines(&mut text, it, None, in_colour));
            }
        } else {
            for (member, finding) in self.not_green() {
                lines(&mut text, finding, member, in_colour);
            }
        }
        let count = |verdict| self.all().filter(|it| it.verdict == verdict).count();
        let [green, yellow, red] = [Verdict::Green, Verdict::Yellow, Verdict::Red].map(count);
        let gap = if all { "\n" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{gap}{green} green, {yellow} yellow, {red} red");
        text
    }

    /// The store. Its name has the ids of its servers. A server that replaced another one has the address of the former one as
    /// its id, so its own address follows.
    fn heading(&self) -> String {
        let ids = self.members.iter().map(|member| &member.id);
        let is_address = |id: &MemberId| id.as_str().contains(':') && self.members.len() > 1;
        let moved = ids.filter(|id| id.address() != id.as_str() && is_address(id));
        let moved = moved.map(|id| format!("; {} is at {}", id.as_str(), id.address()));
        format!("{}{}", self.store, moved.collect::<String>())
    }

    /// Returns what is not green, the worst last: that is what a terminal still shows. Each finding comes with the server
    /// that it is about.
    fn not_green(&self) -> Vec<(Option<&MemberId>, &Finding)> {
        let of_store = self.checks.iter().map(|finding| (None, finding));
        let of_members = self.members.iter().flat_map(|member| {
            let findings = member.checks.iter();
            findings.map(|finding| (Some(&member.id), finding))
        });
        let findings = of_store.chain(of_members);
        let mut found: Vec<_> = findings
            .filter(|(_, finding)| finding.verdict > Verdict::Green)
            .collect();
        found.sort_by_key(|(_, finding)| finding.verdict);
        found
    }
}

/// Writes a finding, with the server that it is about unless a heading names it.
fn lines(text: &mut String, finding: &Finding, member: Option<&MemberId>, in_colour: bool) {
    let word = format!("{:6}", finding.verdict.word());
    let word = if in_colour {
        style(finding.verdict).paint(&word)
    } else {
        word
    };
    let member = member.map(|id| format!("{id}: ")).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "  {word} {:11} {member}{}",
        finding.check, finding.found
    );
    if let Some(advice) = &finding.advice {
        let _ = writeln!(text, "{:21}{}", "", advice.why);
        let _ = writeln!(text, "{:21}-> {}", "", advice.remedy);
    }
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Green => Style::Green,
        Verdict::Yellow => Style::Yellow,
        Verdict::Red => Style::Red,
    }
}

fn json_of(finding: &Finding) -> Value {
    let advice = finding.advice.as_ref();
    json!({
        "id": finding.check,
        "verdict": finding.verdict.word(),
        "found": finding.found,
        "why": advice.map(|advice| &advice.why),
        "remedy": advice.map(|advice| &advice.remedy),
    })
}
