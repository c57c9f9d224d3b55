/// What happens to members that may have forgotten leases, or whose clocks are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustRules {
    /// Their answers do not count until they are safe again.
    Enforced,
    /// The client only logs it. A server that forgets its locks grants them twice, so the quorum promises
    /// `Exclusion::EveryMember`. Members of another quorum are refused
    /// all the same.
    Logged,
}
