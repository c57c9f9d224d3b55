//! The operations of one kind that are under way.

use foldhash::HashMap;

use crate::operation::OperationId;

/// The operations of one kind. An event is passed to its operation once, and ignored if that is over.
#[derive(Debug)]
pub(crate) struct Operations<T>(HashMap<OperationId, T>);

/// Whether an operation is over.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Runs,
    Over,
}

impl<T> Operations<T> {
    /// Adds an operation.
    pub(crate) fn insert(&mut self, id: OperationId, operation: T) {
        self.0.insert(id, operation);
    }

    /// Adds an operation and passes its first event to it.
    pub(crate) fn start(
        &mut self,
        id: OperationId,
        mut operation: T,
        event: impl FnOnce(&mut T) -> Next,
    ) {
        if event(&mut operation) == Next::Runs {
            self.0.insert(id, operation);
        }
    }

    /// Passes an event to an operation.
    pub(crate) fn handle(&mut self, id: OperationId, event: impl FnOnce(&mut T) -> Next) {
        if let Some(operation) = self.0.get_mut(&id)
            && event(operation) == Next::Over
        {
            self.0.remove(&id);
        }
    }

    /// Passes an event to each operation that it concerns, in the order of their ids.
    pub(crate) fn handle_all(
        &mut self,
        concerns: impl Fn(&T) -> bool,
        mut event: impl FnMut(&mut T) -> Next,
    ) {
        for id in self.ids(concerns) {
            self.handle(id, &mut event);
        }
    }

    /// Returns the ids of these operations, in order.
    pub(crate) fn ids(&self, concerns: impl Fn(&T) -> bool) -> Vec<OperationId> {
        let concerned = self.0.iter().filter(|(_, it)| concerns(it));
        let mut ids: Vec<OperationId> = concerned.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) fn remove(&mut self, id: OperationId) -> Option<T> {
        self.0.remove(&id)
    }

    pub(crate) fn get(&self, id: OperationId) -> Option<&T> {
        self.0.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: OperationId) -> Option<&mut T> {
        self.0.get_mut(&id)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Operations<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}
