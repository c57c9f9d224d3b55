use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use leasehold::look::ClientInfo;
use leasehold_quorum::{Engine, Now, Operation, OperationId, PerMember};

use crate::history::Wait;
use crate::state::agenda::Action;
use crate::state::program::{Guard, Program, ProgramState, Purpose};
use crate::state::session::Session;
use crate::time::{MachineClock, Time};

/// A client: an engine, its connections, and the programs that use it.
#[derive(Debug)]
pub(crate) struct SimClient {
    pub(crate) info: Arc<ClientInfo>,
    pub(crate) clock: MachineClock,
    pub(crate) engine: Engine,
    pub(crate) started: u64,
    /// The server of each member.
    pub(crate) members: PerMember<usize>,
    pub(crate) sessions: PerMember<Session>,
    pub(crate) programs: Vec<Program>,
    pub(crate) guards: BTreeMap<Wait, Guard>,
    pub(crate) operations: BTreeMap<OperationId, Purpose>,
    pub(crate) state: ClientState,
    /// Data that arrived and was not read yet, by connection.
    pub(crate) inbox: VecDeque<(usize, Vec<u8>)>,
    /// Connections that broke and that the engine does not know about yet.
    pub(crate) broken: VecDeque<usize>,
    /// Timers that became due while the client was stopped.
    pub(crate) late: Vec<Action>,
    pub(crate) is_flush_planned: bool,
    /// When the next timer is due. Timers with other tokens are void.
    pub(crate) wake_at: Option<Time>,
    pub(crate) token: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    Running,
    /// The process is stopped.
    Stopped,
    Gone,
}

impl SimClient {
    /// Begins an operation of the engine.
    pub(crate) fn start(&mut self, now: Now, operation: Operation) -> OperationId {
        self.started += 1;
        let id = OperationId(self.started);
        self.engine.start(now, id, operation);
        id
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state == ClientState::Running
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.state == ClientState::Gone
    }

    pub(crate) fn now(&self, at: Time) -> Now {
        self.clock.now(at)
    }

    pub(crate) fn crash(&mut self) {
        self.state = ClientState::Gone;
        self.inbox.clear();
        self.broken.clear();
        self.guards.clear();
        self.operations.clear();
    }

    /// Whether no program continues, and nothing is in progress.
    pub(crate) fn is_done(&self) -> bool {
        let is_over = |program: &Program| program.state == ProgramState::Over;
        self.is_gone() || self.programs.iter().all(is_over) && self.operations.is_empty()
    }
}
