//! Runs subjects in their own processes.

pub(crate) mod machine;
pub(crate) mod record;
pub(crate) mod servers;
pub(crate) mod stores;
pub(crate) mod subject;
pub(crate) mod worker_process;
