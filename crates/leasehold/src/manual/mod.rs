//! The manual: what to choose, what can go wrong, and why the defaults are what they are.

pub mod choosing;
pub mod defaults;
pub mod errors;
pub mod failure;
pub mod fencing;
pub mod glossary;
pub mod leadership;
pub mod modes;
pub mod observing;
pub mod once;
pub mod recipes;
pub mod testing;
pub mod waiting;
