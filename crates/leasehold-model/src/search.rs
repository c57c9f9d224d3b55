//! A search of all states, breadth first, with stateright.

use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// The name of the property that the promise of a search is kept.
pub(crate) const PROMISE: &str = "the promise is kept";

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// States visited; states that differ only by names count once.
    pub states: usize,
    /// Whether it visited every state within the bounds.
    pub is_complete: bool,
    /// A history that breaks the promise.
    pub history: Option<Vec<String>>,
    /// Whether it saw what must be possible.
    pub is_seen: bool,
}

/// Visits every state that the model can reach, until a promise breaks or the steps are used up.
pub(crate) fn search<M>(model: M, steps: usize) -> Found
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + Hash + std::fmt::Debug + Send + Sync,
    M::Action: Clone + PartialEq,
{
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.target_state_count(steps).spawn_bfs().join();
    let found = checker.discoveries();
    let line =
        |(state, step): (M::State, Option<M::Action>)| checker.model().format_step(&state, step?);
    Found {
        states: checker.unique_state_count(),
        is_complete: checker.state_count() < steps && !found.contains_key(PROMISE),
        is_seen: found.keys().any(|name| *name != PROMISE),
        history: checker
            .discovery(PROMISE)
            .map(|path| path.into_vec().into_iter().filter_map(line).collect()),
    }
}
