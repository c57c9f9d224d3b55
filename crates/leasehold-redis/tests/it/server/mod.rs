//! What a server has to be, who may use it, and what it says of itself.

mod entrance;
mod examine;
mod forgetting;
mod member_record;
mod old_server;
mod presence;
mod rights;
