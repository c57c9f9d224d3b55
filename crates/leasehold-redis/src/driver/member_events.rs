//! Writes to the log what changed at members, and counts them for metrics.

use leasehold::clock::BootInstant;
use leasehold::member::MemberId;
use leasehold::store::rough_span;
use leasehold::telemetry::{LogEvent, MemberGauges};
use leasehold_quorum::{MemberEvent, PerMember};

/// Logs one event.
pub(super) fn log(members: &PerMember<MemberId>, now: BootInstant, event: MemberEvent) {
    match event {
        MemberEvent::NoVote {
            member,
            reason,
            until,
        } => {
            let again = until.map(|until| rough_span(until.since(now)).to_string());
            let event = LogEvent::MemberHasNoVote.as_str();
            tracing::warn!(event, member = %members[member], reason, again, "member has no vote");
        }
        MemberEvent::HasVote {
            member,
            again: true,
        } => {
            let event = LogEvent::MemberHasVote.as_str();
            tracing::info!(event, member = %members[member], "member has a vote again");
        }
        MemberEvent::HasVote { .. } => {}
        MemberEvent::Restarted { member } => {
            tracing::warn!(member = %members[member], "restarted, and may have forgotten leases");
        }
        MemberEvent::Fails { member, error } => {
            let (reason, id) = (error.reason(), &members[member]);
            // A store of one server knows no votes.
            if members.len() == 1 {
                let event = LogEvent::MemberUnusable.as_str();
                tracing::warn!(event, member = %id, reason, "member cannot be used");
            } else {
                let event = LogEvent::MemberHasNoVote.as_str();
                tracing::warn!(event, member = %id, reason, "member has no vote");
            }
        }
        MemberEvent::Answers { member } => {
            let event = LogEvent::MemberAnswers.as_str();
            tracing::info!(event, member = %members[member], "member answers again");
        }
        MemberEvent::Suspended { member, span } => {
            let member = &members[member];
            tracing::warn!(%member, ?span, "this machine was suspended, and its clock did not notice");
        }
    }
}

/// Notes the event in the metric of the members' states.
pub(super) fn count(gauges: &mut MemberGauges, event: &MemberEvent) {
    match event {
        MemberEvent::NoVote { member, .. } => gauges.judged((*member).into(), false),
        MemberEvent::HasVote { member, .. } => gauges.judged((*member).into(), true),
        MemberEvent::Fails { member, .. } => gauges.failing((*member).into(), true),
        MemberEvent::Answers { member } => gauges.failing((*member).into(), false),
        MemberEvent::Restarted { .. } | MemberEvent::Suspended { .. } => {}
    }
}
