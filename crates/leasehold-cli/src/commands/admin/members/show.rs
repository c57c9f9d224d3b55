use std::fmt::Write as _;
use std::time::Duration;

use leasehold::member::{MemberId, MemberRecord, MemberSet, MemberStatus};
use serde_json::{Value, json};

use crate::commands::admin::members::args::MembersArgs;
use crate::commands::admin::members::ask_members::{ask_members, stated_set};
use crate::commands::admin::members::servers::Servers;
use crate::commands::admin::members::state::{MemberState, judge};
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::quorum_shortfall::{NOT_INITIALIZED, have_no_record, needed, once_remedy};
use crate::output::table;
use crate::output::time_text::{millis, whole_seconds};
use crate::output::{self, Output};
use crate::runtime::runtime;

/// Shows the servers. The exit code says whether a majority has a vote.
pub(super) fn show(args: &MembersArgs, output: &Output) -> Result<ExitCode, Failure> {
    let servers = Servers::choose(&args.store, output)?;
    let quorum = servers.quorum();
    let client = servers.client();
    let (set, (states, requests_in)) = runtime()?.block_on(async {
        let seen = ask_members(quorum).await;
        let set = stated_set(quorum, &seen);
        judge(&client, seen).await.map(|judged| (set, judged))
    })?;
    let roll = Roll {
        set,
        states,
        requests_in,
    };
    let printed = if args.json {
        output::print_json(&roll.json(&client.to_string()))
    } else {
        output::print(&roll.text())
    };
    printed?;
    Ok(if roll.has_majority() {
        ExitCode::SUCCESS
    } else {
        ExitCode::UNREACHABLE
    })
}

/// The members of a quorum, and the state of each.
struct Roll {
    set: MemberSet,
    states: Vec<MemberState>,
    /// The time until `once` runs commands, if that is known.
    requests_in: Option<Duration>,
}

impl Roll {
    fn voting(&self) -> usize {
        let counts = |state: &&MemberState| state.out.is_none();
        self.states.iter().filter(counts).count()
    }

    fn has_majority(&self) -> bool {
        self.voting() >= needed(self.states.len())
    }

    /// Whether no server that answers has a record of the quorum.
    fn is_uninitialized(&self) -> bool {
        let answers = self.states.iter().filter_map(|it| it.status.as_ref());
        have_no_record(self.states.len(), answers)
    }

    /// With fewer servers there is no quorum to initialize.
    fn is_quorum(&self) -> bool {
        self.states.len() >= 3
    }

    fn text(&self) -> String {
        let head = ["SERVER", "VOTE", "UPTIME", "DURABLE", "CLOCK", "GENERATION"];
        let mut rows = vec![head.map(String::from)];
        rows.extend(self.states.iter().map(row));
        let mut text = table::columns(&rows);
        for (why, ids) in self.reasons() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {why}", ids.join(", "));
        }
        let (total, needed) = (self.states.len(), needed(self.states.len()));
        let _ = writeln!(
            text,
            "{} of {total} servers have a vote, {needed} needed",
            self.voting()
        );
        if self.is_uninitialized() {
            let _ = writeln!(text, "{NOT_INITIALIZED}");
        } else if self.is_quorum() {
            let _ = writeln!(text, "once: {}", self.once_text());
        }
        text
    }

    /// Says when `once` runs commands on this quorum.
    fn once_text(&self) -> String {
        match self.requests_in {
            None => "not possible, because too few servers that answer are durable".into(),
            Some(Duration::ZERO) if self.has_majority() => "possible".into(),
            Some(Duration::ZERO) => "possible when enough servers have a vote".into(),
            Some(span) => {
                let remedy = once_remedy(self.states.iter().filter_map(|it| it.status.as_ref()));
                let remedy = remedy.map(|text| format!("; {text}")).unwrap_or_default();
                format!(
                    "possible in {}, when enough servers remember a day{remedy}",
                    whole_seconds(span)
                )
            }
        }
    }

    /// Why servers have no vote, and which.
    fn reasons(&self) -> Vec<(&str, Vec<String>)> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for state in &self.states {
            let Some(out) = &state.out else { continue };
            let known = reasons.iter_mut().find(|(why, _)| *why == out.why);
            match known {
                Some((_, ids)) => ids.push(state.id.to_string()),
                None => reasons.push((&out.why, vec![state.id.to_string()])),
            }
        }
        reasons
    }

    fn json(&self, store: &str) -> Value {
        let members: Vec<_> = self.states.iter().map(|it| self.member(it)).collect();
        json!({
            "store": store,
            "initialized": self.is_quorum() && !self.is_uninitialized(),
            "max_ttl_ms": millis(self.set.max_ttl),
            "clock_tolerance_ms": millis(self.set.clock_tolerance),
            "voting": self.voting(),
            "needed": needed(self.states.len()),
            "once_in_ms": self.requests_in.map(millis),
            "members": members,
        })
    }

    fn member(&self, state: &MemberState) -> Value {
        let status = state.status.as_ref();
        let out = state.out.as_ref();
        let member_record = status.and_then(|status| status.member_record.as_ref());
        json!({
            "id": state.id.as_str(),
            "address": state.id.address(),
            "answers": status.is_some(),
            "has_vote": out.is_none(),
            "reason": out.map(|out| &out.why),
            "no_vote_for_ms": out.and_then(|out| out.again).map(millis),
            "uptime_ms": status.map(|status| millis(status.uptime)),
            "durable": status.map(MemberStatus::will_remember),
            "clock_offset_us": state.clock_offset,
            "member_record": member_record.map(|member_record| self.member_record(member_record)),
        })
    }

    fn member_record(&self, member_record: &MemberRecord) -> Value {
        let ids: Vec<_> = member_record.set.ids.iter().map(MemberId::as_str).collect();
        json!({
            "members": ids,
            "max_ttl_ms": millis(member_record.set.max_ttl),
            "clock_tolerance_ms": millis(member_record.set.clock_tolerance),
            "generation": member_record.configuration(),
            "differs": member_record.set != self.set,
        })
    }
}

fn row(state: &MemberState) -> [String; 6] {
    let counts = match &state.out {
        None => "yes".into(),
        Some(out) => out
            .again
            .map_or("no".into(), |again| format!("in {}", whole_seconds(again))),
    };
    let unknown = || String::from("-");
    let mut row = [
        state.id.to_string(),
        counts,
        unknown(),
        unknown(),
        unknown(),
        unknown(),
    ];
    if let Some(status) = &state.status {
        let uptime = Duration::from_secs(status.uptime.as_secs());
        row[2] = humantime::format_duration(uptime).to_string();
        row[3] = match (status.will_remember(), status.durable) {
            (true, _) => "yes",
            (false, true) => "after restart",
            (false, false) => "no",
        }
        .into();
        row[5] = status
            .member_record
            .as_ref()
            .map_or_else(unknown, |member_record| {
                member_record.configuration().to_string()
            });
    }
    if let Some(micros) = state.clock_offset {
        row[4] = format!("{:+.1}ms", micros as f64 / 1000.0);
    }
    row
}
