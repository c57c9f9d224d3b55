/// What a line of the log reports, as its field `event` says. The texts of the lines are for people, and may
/// change.
///
/// # Examples
///
/// ```
/// use leasehold::telemetry::LogEvent;
///
/// assert_eq!(LogEvent::parse("member_has_vote"), Some(LogEvent::MemberHasVote));
/// assert_eq!(LogEvent::RenewalsFail.as_str(), "renewals_fail");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEvent {
    /// A guard is lost. The fields `key` and `reason` name the lock and the reason.
    Lost,
    /// Renewals fail, on the `store` and for that many `locks`.
    RenewalsFail,
    /// Renewals succeed again.
    RenewalsSucceed,
    /// The `member` has no vote, for this `reason`; `again` is the time until it has one, if that is known.
    MemberHasNoVote,
    /// The `member` has a vote again.
    MemberHasVote,
    /// The `member`, which is the only server of its store, cannot be used for this `reason`.
    MemberUnusable,
    /// The `member` answers again.
    MemberAnswers,
}

impl LogEvent {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Lost,
        Self::RenewalsFail,
        Self::RenewalsSucceed,
        Self::MemberHasNoVote,
        Self::MemberHasVote,
        Self::MemberUnusable,
        Self::MemberAnswers,
    ];

    /// Returns the value of the field `event`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::RenewalsFail => "renewals_fail",
            Self::RenewalsSucceed => "renewals_succeed",
            Self::MemberHasNoVote => "member_has_no_vote",
            Self::MemberHasVote => "member_has_vote",
            Self::MemberUnusable => "member_unusable",
            Self::MemberAnswers => "member_answers",
        }
    }

    /// Returns the event that this value of the field `event` names.
    pub fn parse(value: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == value)
    }
}
