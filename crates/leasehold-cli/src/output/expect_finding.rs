//! What tests of findings need.

use leasehold::{Error, ErrorKind};

use super::finding::{Finding, Verdict};

/// The error of a right that is missing.
pub(crate) fn refused() -> Error {
    Error::new(ErrorKind::Refused, "the user \"ann\" lacks the right +x")
}

/// Asserts that `check` has this verdict, has advice unless it is green, and says `part`.
#[track_caller]
pub(crate) fn expect(findings: &[Finding], check: &str, verdict: Verdict, part: &str) {
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
pub(crate) fn green(findings: &[Finding], check: &str, part: &str) {
    expect(findings, check, Verdict::Green, part);
}

#[track_caller]
pub(crate) fn yellow(findings: &[Finding], check: &str, part: &str) {
    expect(findings, check, Verdict::Yellow, part);
}

#[track_caller]
pub(crate) fn red(findings: &[Finding], check: &str, part: &str) {
    expect(findings, check, Verdict::Red, part);
}

/// Asserts that there is no such check.
#[track_caller]
pub(crate) fn expect_none(findings: &[Finding], check: &str) {
    assert!(findings.iter().all(|it| it.check != check), "{findings:?}");
}

#[track_caller]
pub(crate) fn all_green(findings: &[Finding]) {
    let ill = findings.iter().find(|it| it.verdict != Verdict::Green);
    assert_eq!(ill, None);
}
