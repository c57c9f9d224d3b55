//! Redis servers, and what tests send to them.

pub(super) mod builder;
pub(super) mod redis_py;
pub(super) mod resp;
pub(super) mod server;
pub(super) mod server_clock;
pub(super) mod set;
