use std::time::Duration;

use serde_json::{Value, json};

use super::cycles::{InFlight, OneAtATime};
use super::estimate::{about, grouped, locks_renewed};
use super::members::MemberFigures;
use super::plan::Plan;
use super::renewals::{Renewals, TOGETHER};
use super::statistics::Spread;
use crate::output::table;
use crate::output::time_text::millis;

/// All that was measured.
#[derive(Debug)]
pub(super) struct Figures {
    /// Empty for a store without members.
    pub(super) members: Vec<MemberFigures>,
    pub(super) one_at_a_time: OneAtATime,
    pub(super) in_flight: InFlight,
    /// `None` if the other client was never seen waiting.
    pub(super) hand_over: Option<Spread>,
    /// `None` if the store has no renewals.
    pub(super) renewals: Option<Renewals>,
}

impl Figures {
    /// For programs or for people.
    pub(super) fn render(&self, json: bool, store: &str, plan: &Plan) -> String {
        if json {
            format!("{}\n", self.json(store, plan))
        } else {
            self.text(plan)
        }
    }

    /// A table, the reasons for missing figures, and a verdict.
    fn text(&self, plan: &Plan) -> String {
        let mut text = table::numbers(&self.rows(plan));
        for remark in self.remarks() {
            text += &format!("{remark}\n");
        }
        text + &self.verdict(plan)
    }

    fn rows(&self, plan: &Plan) -> Vec<[String; 5]> {
        let mut rows = vec![["MEASURED", "P50", "P99", "A SECOND", "SAMPLES"].map(String::from)];
        for member in &self.members {
            let what = format!("round trip to {}", member.id);
            rows.push(row(what, member.round_trip, None));
        }
        let one = &self.one_at_a_time;
        let mut add = |what: &str, spread, rate| rows.push(row(what.to_owned(), spread, rate));
        add("acquire, one at a time", Some(one.acquire), None);
        add("release, one at a time", Some(one.release), None);
        let cycle = "acquire and release, ";
        let rate = Some(one.per_second);
        add(&format!("{cycle}one at a time"), Some(one.cycle), rate);
        let many = &self.in_flight;
        let what = format!("{cycle}{} in flight", plan.in_flight);
        add(&what, Some(many.cycle), Some(many.per_second));
        add("hand-over", self.hand_over, None);
        if let Some(renewals) = &self.renewals {
            let what = format!("renewal, {TOGETHER} locks a message");
            add(&what, Some(renewals.message), Some(renewals.per_second));
        }
        rows
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.members.is_empty() {
            remarks.push("round trip: not measured, because there is no server".to_owned());
        }
        for member in &self.members {
            if let Some(reason) = &member.reason {
                remarks.push(format!("{}: {reason}", member.id));
            }
        }
        if self.hand_over.is_none() {
            remarks.push("hand-over: not measured, because no client was seen waiting".to_owned());
        }
        if self.renewals.is_none() {
            remarks.push(
                "renewal: not measured, because locks of this store end with their process"
                    .to_owned(),
            );
        }
        remarks
    }

    fn verdict(&self, plan: &Plan) -> String {
        let count = self.members.len();
        let counting = self.members.iter().filter(|member| member.counts).count();
        let who = match (count, counting) {
            (0, _) => "this folder serves".to_owned(),
            (1, _) => "this server serves".to_owned(),
            _ if count == counting => format!("these {count} servers serve"),
            _ => format!("these {count} servers ({counting} with a vote) serve"),
        };
        let many = &self.in_flight;
        let cycles = format!(
            "Seen from here, {who} about {} acquisitions and releases a second ({})",
            about(many.per_second),
            many.bound
        );
        match &self.renewals {
            None => format!("{cycles}, without other load.\n"),
            Some(renewals) => format!(
                "{cycles}, or keeps about {} locks renewed at TTL {} ({}), without other load.\n",
                about(locks_renewed(renewals.per_second, plan.ttl)),
                humantime::format_duration(plan.ttl),
                renewals.bound
            ),
        }
    }

    fn json(&self, store: &str, plan: &Plan) -> Value {
        let members: Vec<_> = self.members.iter().map(member).collect();
        let (one, many) = (&self.one_at_a_time, &self.in_flight);
        let renewals = self.renewals.as_ref();
        let carried = renewals.map(|it| locks_renewed(it.per_second, plan.ttl).round());
        json!({
            "version": 1,
            "store": store,
            "ttl_ms": millis(plan.ttl),
            "duration_ms": millis(plan.duration),
            "members": members,
            "one_at_a_time": {
                "acquire": spread(one.acquire),
                "release": spread(one.release),
                "cycles_per_s": tenths(one.per_second),
            },
            "in_flight": {
                "in_flight": plan.in_flight,
                "cycle": spread(many.cycle),
                "cycles_per_s": tenths(many.per_second),
                "limited_by": many.bound.word(),
            },
            "hand_over": self.hand_over.map(spread),
            "renewals": renewals.map(|it| json!({
                "locks": it.locks,
                "locks_per_message": TOGETHER,
                "message": spread(it.message),
                "renewals_per_s": tenths(it.per_second),
                "limited_by": it.bound.word(),
            })),
            "estimate": {
                "locks_per_s": many.per_second.round(),
                "locks_renewed": carried,
            },
        })
    }
}

fn member(member: &MemberFigures) -> Value {
    json!({
        "id": member.id.as_str(),
        "answers": member.round_trip.is_some(),
        "has_vote": member.counts,
        "reason": member.reason,
        "round_trip": member.round_trip.map(spread),
    })
}

fn spread(spread: Spread) -> Value {
    let micros = |span: Duration| tenths(span.as_secs_f64() * 1e6);
    json!({
        "samples": spread.samples,
        "p50_us": micros(spread.p50),
        "p99_us": micros(spread.p99),
    })
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn row(what: String, spread: Option<Spread>, rate: Option<f64>) -> [String; 5] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    [
        what,
        or_none(spread.map(|spread| table::short(spread.p50))),
        or_none(spread.map(|spread| table::short(spread.p99))),
        or_none(rate.map(grouped)),
        or_none(spread.map(|spread| spread.samples.to_string())),
    ]
}

#[cfg(test)]
mod tests {
    use leasehold::store::MemberId;

    use super::*;
    use crate::commands::bench::estimate::Bound;

    fn took(micros: u64) -> Spread {
        Spread::of(vec![Duration::from_micros(micros)]).unwrap()
    }

    fn figures() -> Figures {
        Figures {
            members: Vec::new(),
            one_at_a_time: OneAtATime {
                acquire: took(87),
                release: took(1_234),
                cycle: took(12_345),
                per_second: 81.0,
            },
            in_flight: InFlight {
                cycle: took(123_456),
                per_second: 29_123.4,
                bound: Bound::Client,
            },
            hand_over: None,
            renewals: None,
        }
    }

    fn plan() -> Plan {
        Plan {
            duration: Duration::from_secs(5),
            in_flight: 64,
            ttl: Duration::from_secs(30),
            prefix: "p".into(),
        }
    }

    #[test]
    fn report_names_the_limit_and_inapplicable_parts() {
        let text = figures().text(&plan());
        let expected = "\
MEASURED                               P50     P99  A SECOND  SAMPLES
acquire, one at a time                87µs    87µs         -        1
release, one at a time              1.23ms  1.23ms         -        1
acquire and release, one at a time  12.3ms  12.3ms        81        1
acquire and release, 64 in flight    123ms   123ms    29,123        1
hand-over                                -       -         -        -
round trip: not measured, because there is no server
hand-over: not measured, because no client was seen waiting
renewal: not measured, because locks of this store end with their process
Seen from here, this folder serves about 29,000 acquisitions and releases a second \
(limited by the CPU of this client), without other load.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn silent_member_is_named_with_its_reason() {
        let mut figures = figures();
        let member = |id: &str, reason: Option<&str>| MemberFigures {
            id: MemberId::new(id),
            counts: reason.is_none(),
            reason: reason.map(Into::into),
            round_trip: reason.is_none().then(|| took(50)),
        };
        figures.members = vec![member("a:1", None), member("b:2", Some("no connection"))];
        figures.renewals = Some(Renewals {
            locks: 512,
            message: took(900),
            per_second: 12_345.0,
            bound: Bound::Store,
        });
        let text = figures.text(&plan());
        for part in [
            "round trip to a:1 ",
            "\nb:2: no connection\n",
            "these 2 servers (1 with a vote) serve about 29,000 acquisitions",
            "keeps about 120,000 locks renewed at TTL 30s (limited by the store or the network",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let json = figures.json("x", &plan());
        assert_eq!(json["members"][0]["round_trip"]["p50_us"], 50.0);
        assert_eq!(json["members"][1]["round_trip"], Value::Null);
        assert_eq!(json["estimate"]["locks_renewed"], 123_450.0);
        assert_eq!(json["hand_over"], Value::Null);
    }
}
