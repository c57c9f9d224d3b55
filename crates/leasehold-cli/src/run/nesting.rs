use std::env;

use leasehold::{ClientId, Holder, Mode, Owner};
use nix::unistd::{Pid, getpgrp};

use crate::run::descendants::Process;

/// The runs around this one, as the environment tells: private, for the program itself.
///
/// `LEASEHOLD_RUN` holds `<guardian>:<client>,<client>…`: the guardian of the process group, and
/// the clients that hold locks around, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nesting {
    guardian: Option<Pid>,
    chain: Vec<ClientId>,
}

pub(super) const VARIABLE: &str = "LEASEHOLD_RUN";

impl Nesting {
    /// What the environment says; nothing, if it makes no sense.
    pub(super) fn of_this_process() -> Self {
        let text = env::var(VARIABLE).ok();
        text.and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// The variable's value for a command guarded by `guardian` and locked by `chain`.
    pub(super) fn variable(guardian: Pid, chain: &str) -> String {
        format!("{guardian}:{chain}")
    }

    /// The guardian of the group that this process is in, if it is a guarded one: then this run is
    /// nested and stays in the group. A shell with job control inside a run puts its jobs into
    /// groups of their own, which are theirs again.
    pub(super) fn guardian_of_this_group(&self) -> Option<Pid> {
        let leader = Process::find(getpgrp())?;
        self.guardian.filter(|guardian| leader.parent == *guardian)
    }

    /// The chain with `client` added, as the guardian is told it.
    pub(super) fn chain_with(&self, client: ClientId) -> String {
        let mut chain: Vec<String> = self.chain.iter().map(ClientId::to_string).collect();
        chain.push(client.to_string());
        chain.join(",")
    }

    /// Whether any run is around this one.
    pub(super) fn is_nested(&self) -> bool {
        !self.chain.is_empty()
    }

    /// The holder that could only free the lock after this run ended: one around it.
    pub(super) fn deadlock<'a>(&self, holders: &'a [Holder], wanted: Mode) -> Option<&'a Holder> {
        holders.iter().find(|holder| {
            let alone = holder.mode == Mode::Exclusive || wanted == Mode::Exclusive;
            alone && self.is_around(holder)
        })
    }

    /// Whether a run around this one is among those who share the lock.
    pub(super) fn shares(&self, holders: &[Holder]) -> bool {
        let mut shared = holders.iter().filter(|holder| holder.mode == Mode::Shared);
        shared.any(|holder| self.is_around(holder))
    }

    fn is_around(&self, holder: &Holder) -> bool {
        let client = holder.owner.map(Owner::client);
        client.is_some_and(|client| self.chain.contains(&client))
    }

    fn parse(text: &str) -> Option<Self> {
        let (guardian, chain) = text.split_once(':')?;
        let chain: Result<_, _> = chain.split(',').map(str::parse).collect();
        Some(Self {
            guardian: Some(Pid::from_raw(guardian.parse().ok()?)),
            chain: chain.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::ambient::SystemEntropy;

    #[test]
    fn the_variable_survives_its_text_form() {
        let (outer, inner) = (
            ClientId::random(&SystemEntropy),
            ClientId::random(&SystemEntropy),
        );
        let around = Nesting::parse(&Nesting::variable(Pid::from_raw(7), &outer.to_string()));
        let around = around.unwrap();
        assert_eq!(around.chain, [outer]);
        assert_eq!(around.chain_with(inner), format!("{outer},{inner}"));
        assert!(around.is_nested());
    }

    #[test]
    fn nonsense_is_no_nesting() {
        for text in ["", "7", "7:", "x:0123456789abcdef", "7:abc"] {
            assert_eq!(Nesting::parse(text), None, "{text:?}");
        }
        assert!(!Nesting::default().is_nested());
    }

    #[test]
    fn only_holders_around_this_run_that_would_keep_it_out_are_a_deadlock() {
        let outer = ClientId::random(&SystemEntropy);
        let nesting = Nesting::parse(&Nesting::variable(Pid::from_raw(7), &outer.to_string()));
        let nesting = nesting.unwrap();
        let holder = |client, mode| {
            let mut holder = Holder::unknown(mode);
            holder.owner = Some(Owner::random(client, &SystemEntropy));
            [holder]
        };
        let stranger = ClientId::random(&SystemEntropy);
        let (alone, shared) = (Mode::Exclusive, Mode::Shared);
        assert!(nesting.deadlock(&holder(outer, alone), shared).is_some());
        assert!(nesting.deadlock(&holder(outer, shared), alone).is_some());
        assert!(nesting.deadlock(&holder(outer, shared), shared).is_none());
        assert!(nesting.deadlock(&holder(stranger, alone), alone).is_none());
        assert!(nesting.shares(&holder(outer, shared)));
        assert!(
            !nesting.shares(&holder(outer, alone)) && !nesting.shares(&holder(stranger, shared))
        );
        assert!(nesting.deadlock(&[Holder::unknown(alone)], alone).is_none());
    }
}
