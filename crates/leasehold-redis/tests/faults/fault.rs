use leasehold_testkit::servers::{AppendFsync, RedisBuilder, RedisServer};

use crate::cluster::Cluster;
use crate::fault_actions;
use crate::new_disk;

/// A way to break something that a lock relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    KillAndForget,
    PowerCut,
    KillDurable,
    FreezeOne,
    FreezeTwo,
    PauseHolder,
    CutConnections,
    HalfOpen,
    SlowAnswers,
    StepClock,
    FlushAll,
    DurabilityOff,
    PromotedReplica,
    NewDisk,
}

impl Fault {
    /// All faults, including none at all for comparison.
    pub(crate) const ALL: &[Self] = &[
        Self::None,
        Self::KillAndForget,
        Self::PowerCut,
        Self::KillDurable,
        Self::FreezeOne,
        Self::FreezeTwo,
        Self::PauseHolder,
        Self::CutConnections,
        Self::HalfOpen,
        Self::SlowAnswers,
        Self::StepClock,
        Self::FlushAll,
        Self::DurabilityOff,
        Self::PromotedReplica,
        Self::NewDisk,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::KillAndForget => "kill -9, restart empty",
            Self::PowerCut => "power cut, AOF everysec",
            Self::KillDurable => "kill -9, AOF always",
            Self::FreezeOne => "SIGSTOP one member",
            Self::FreezeTwo => "SIGSTOP two members",
            Self::PauseHolder => "SIGSTOP the holder",
            Self::CutConnections => "connections cut",
            Self::HalfOpen => "connections half open",
            Self::SlowAnswers => "answers delayed",
            Self::StepClock => "one clock stepped",
            Self::FlushAll => "FLUSHALL",
            Self::DurabilityOff => "durability switched off",
            Self::PromotedReplica => "replica promoted",
            Self::NewDisk => "new disk under a committed result",
        }
    }

    pub(crate) fn test_name(self) -> String {
        let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let name: String = self.name().to_lowercase().chars().map(plain).collect();
        name.split('_')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("_")
    }

    /// Whether a member loses a lease that its holder believes in. Only a quorum with trust rules survives
    /// that.
    pub(crate) fn makes_a_member_forget(self) -> bool {
        matches!(
            self,
            Self::KillAndForget
                | Self::PowerCut
                | Self::StepClock
                | Self::FlushAll
                | Self::DurabilityOff
                | Self::PromotedReplica
        )
    }

    /// Whether each round needs a new cluster. A member with a new disk has no vote on results for a day,
    /// which is their retention, so the next round could not commit one.
    pub(crate) fn needs_a_new_cluster(self) -> bool {
        self == Self::NewDisk
    }

    /// Returns the configuration of the servers that this fault needs.
    pub(crate) fn servers(self) -> RedisBuilder {
        let servers = RedisServer::builder();
        match self {
            Self::PowerCut => servers.append_only(AppendFsync::EverySecond),
            Self::KillDurable | Self::DurabilityOff | Self::NewDisk => servers.durable(),
            Self::PromotedReplica => fault_actions::replicated_at_once(servers.durable()),
            Self::StepClock => servers.steppable_clock(),
            _ => servers,
        }
    }

    /// Causes the fault once, and waits until everything works again.
    pub(crate) fn strike(self, cluster: &mut Cluster) {
        match self {
            Self::None => fault_actions::nothing(cluster),
            Self::KillAndForget => fault_actions::kill_and_forget(cluster),
            Self::PowerCut => fault_actions::power_cut(cluster),
            Self::KillDurable => fault_actions::kill_durable(cluster),
            Self::FreezeOne => fault_actions::freeze(cluster, 1),
            Self::FreezeTwo => fault_actions::freeze(cluster, 2),
            Self::PauseHolder => fault_actions::pause_holder(cluster),
            Self::CutConnections => fault_actions::cut_connections(cluster),
            Self::HalfOpen => fault_actions::half_open(cluster),
            Self::SlowAnswers => fault_actions::slow_answers(cluster),
            Self::StepClock => fault_actions::step_clock(cluster),
            Self::FlushAll => fault_actions::flush_all(cluster),
            Self::DurabilityOff => fault_actions::durability_off(cluster),
            Self::PromotedReplica => fault_actions::promoted_replica(cluster),
            Self::NewDisk => new_disk::strike(cluster),
        }
    }
}
