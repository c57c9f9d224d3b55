//! The errors for too few members.

use std::time::Duration;

use leasehold_types::{Error, ErrorKind, MemberFailure};

use crate::ballot::majority;

/// Returns the error for too few members out of `total`. `open` is the number of members that had not
/// answered at the decision.
///
/// - A single member's own error is returned unchanged.
/// - [`ErrorKind::PermitsDiffer`] wins if the members without it are no majority.
/// - [`ErrorKind::Misconfigured`] wins in the same way: most members have another list.
/// - A kind that all failed members share is kept if waiting does not help and the other members are no
///   majority.
/// - Otherwise the kind is [`ErrorKind::NoQuorum`].
///
/// The error is "not ready" if a majority answered, some of them that they are not ready.
pub(crate) fn too_few(total: usize, open: usize, failures: Vec<MemberFailure>) -> Error {
    if let (1, [only]) = (total, failures.as_slice()) {
        return only.error.clone();
    }
    let kind = |failure: &MemberFailure| failure.error.kind();
    let mut differing = failures
        .iter()
        .filter(|failure| kind(failure) == ErrorKind::PermitsDiffer);
    let others = total - differing.clone().count();
    if others < majority(total)
        && let Some(first) = differing.next()
    {
        // They all report the same, and the other members change nothing.
        return Error::new(ErrorKind::PermitsDiffer, first.error.reason());
    }
    let shared = failures.first().map(kind).filter(|first| {
        let may_pass = matches!(
            first,
            ErrorKind::Unreachable
                | ErrorKind::Untrusted
                | ErrorKind::InvalidResponse
                | ErrorKind::Closed
        );
        let is_decisive = total - failures.len() < majority(total);
        is_decisive && !may_pass && failures.iter().all(|failure| kind(failure) == *first)
    });
    // A server that is new to this list may be among them.
    let misconfigured = failures
        .iter()
        .filter(|failure| kind(failure) == ErrorKind::Misconfigured);
    let has_other_list = total - misconfigured.count() < majority(total);
    let shared = shared.or(has_other_list.then_some(ErrorKind::Misconfigured));
    let eligible_after = eligible_after(total, &failures);
    let is_not_ready = is_not_ready(total, open, &failures);
    let error = Error::new(
        shared.unwrap_or(ErrorKind::NoQuorum),
        reason(total, open, failures.len()),
    )
    .with_members(failures)
    .with_eligible_after(eligible_after);
    match is_not_ready {
        true => error.with_not_ready(),
        false => error,
    }
}

fn is_not_ready(total: usize, open: usize, failures: &[MemberFailure]) -> bool {
    let refusing = failures.iter().filter(|it| it.error.is_not_ready()).count();
    let silent = failures.len() - refusing + open;
    refusing > 0 && total.saturating_sub(silent) >= majority(total)
}

fn reason(total: usize, open: usize, failed: usize) -> String {
    let (counting, needed) = (total - failed, majority(total));
    if counting >= needed {
        // Some members may have the lease, and others may have lost it.
        return format!("no quorum: fewer than {needed} of {total} servers gave the same answer");
    }
    // Open requests may still fail.
    let most = match open > 0 {
        true => "at most ",
        false => "",
    };
    format!("no quorum: {most}{counting} of {total} servers have a vote, {needed} needed")
}

/// Returns after how long enough members have a vote again, if that takes only time.
fn eligible_after(total: usize, failures: &[MemberFailure]) -> Option<Duration> {
    let lacking = majority(total).saturating_sub(total - failures.len());
    let mut again: Vec<Duration> = failures.iter().filter_map(|it| it.eligible_after).collect();
    again.sort_unstable();
    again.get(lacking.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use leasehold_types::MemberId;

    use super::*;

    fn failure(number: usize, kind: ErrorKind) -> MemberFailure {
        let id = MemberId::new(format!("m{number}"));
        MemberFailure::new(id, Error::new(kind, "no"))
    }

    fn failures(kinds: &[ErrorKind]) -> Vec<MemberFailure> {
        let numbered = kinds.iter().enumerate();
        numbered.map(|(n, kind)| failure(n, *kind)).collect()
    }

    #[test]
    fn no_quorum_says_what_is_lacking() {
        for (total, open, failed, lacking) in [
            (5, 0, 3, "2 of 5 servers have a vote, 3 needed"),
            (5, 1, 3, "at most 2 of 5 servers have a vote, 3 needed"),
            (4, 0, 2, "2 of 4 servers have a vote, 3 needed"),
            (5, 0, 1, "fewer than 3 of 5 servers gave the same answer"),
            (4, 0, 0, "fewer than 3 of 4 servers gave the same answer"),
        ] {
            let error = too_few(total, open, failures(&vec![ErrorKind::Unreachable; failed]));
            assert_eq!(error.kind(), ErrorKind::NoQuorum);
            assert_eq!(error.reason(), format!("no quorum: {lacking}"));
        }
    }

    #[test]
    fn kind_is_shared_unless_waiting_mends_it() {
        use ErrorKind::{
            InvalidInput, Misconfigured, NoQuorum, PermitsDiffer, Unreachable, Unsupported,
            Untrusted,
        };
        for (total, kinds, kind) in [
            (3, &[InvalidInput, InvalidInput][..], InvalidInput),
            (3, &[InvalidInput, Unreachable], NoQuorum),
            (3, &[Untrusted, Misconfigured, Misconfigured], Misconfigured),
            (3, &[Untrusted, Untrusted], NoQuorum),
            (3, &[PermitsDiffer, PermitsDiffer], PermitsDiffer),
            (5, &[PermitsDiffer, Unreachable, Unreachable], NoQuorum),
            (3, &[PermitsDiffer], NoQuorum),
            (3, &[InvalidInput], NoQuorum),
            (1, &[Unsupported], Unsupported),
            (1, &[Unreachable], Unreachable),
        ] {
            assert_eq!(too_few(total, 0, failures(kinds)).kind(), kind, "{kinds:?}");
        }
    }

    #[test]
    fn majority_that_answers_may_not_be_ready() {
        let is_not_ready = |total, open, refusing, dead| {
            let mut failures = failures(&vec![ErrorKind::Unreachable; refusing + dead]);
            for failure in failures.iter_mut().take(refusing) {
                failure.error = failure.error.clone().with_not_ready();
            }
            too_few(total, open, failures).is_not_ready()
        };
        assert!(is_not_ready(1, 0, 1, 0) && is_not_ready(3, 0, 2, 0) && is_not_ready(5, 1, 1, 1));
        assert!(!is_not_ready(1, 0, 0, 1) && !is_not_ready(3, 0, 0, 2));
        assert!(!is_not_ready(3, 0, 1, 2) && !is_not_ready(3, 2, 1, 0));
    }

    #[test]
    fn error_says_when_a_majority_has_a_vote() {
        let again = |seconds: &[Option<u64>]| {
            let mut failures = failures(&vec![ErrorKind::Untrusted; seconds.len()]);
            for (failure, seconds) in failures.iter_mut().zip(seconds) {
                failure.eligible_after = seconds.map(Duration::from_secs);
            }
            too_few(5, 0, failures)
                .eligible_after()
                .map(|it| it.as_secs())
        };
        assert_eq!(again(&[Some(9), Some(5), None]), Some(5));
        assert_eq!(again(&[Some(9), Some(5), Some(7), None]), Some(7));
        assert_eq!(again(&[None, Some(5), None, None]), None);
    }
}
