//! The requirements on a server, the rights of its users, and what it reports about itself.

mod entrance;
mod examine;
mod member_record;
mod old_server;
mod rights;
mod secrets;
mod status;
