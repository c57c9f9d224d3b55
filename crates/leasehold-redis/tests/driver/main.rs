//! The driver against real servers.

mod cancelling;
mod cycles;
mod fixture;
mod outages;
mod reading;
