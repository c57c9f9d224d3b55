//! Runs subjects in their own processes, and keeps what they did as lines of raw results.

pub(crate) mod bare_keys;
pub(crate) mod commands;
pub(crate) mod machine;
pub(crate) mod peers;
pub(crate) mod record;
pub(crate) mod results;
pub(crate) mod subject;
pub(crate) mod surroundings;
pub(crate) mod worker_process;
