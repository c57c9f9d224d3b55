//! The native part of the npm package `leasehold`. Programs see the JavaScript in `lib/`, which makes promises, signals and
//! errors of what this part returns.

mod client;
mod hold;
mod js_loop;
mod settings;
