//! The native part of the npm package `leasehold`. Programs see the JavaScript in `lib/`, which makes promises, signals and
//! errors of what this part returns.

pub mod client;
pub mod hold;
pub mod js_loop;
pub mod settings;
