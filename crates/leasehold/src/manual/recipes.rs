//! Recipes: whole programs for a service.
//!
//! They are in the folder `examples` of the crate, next to eleven others, and `cargo run -p leasehold --example NAME` runs one.
//!
//! # Shutting down
//!
//! ```no_run
#![doc = include_str!("../../examples/graceful_shutdown.rs")]
//! ```
//!
//! # A `CancellationToken`
//!
//! ```no_run
#![doc = include_str!("../../examples/cancellation_token.rs")]
//! ```
//!
//! # A service with several replicas
//!
//! ```no_run
#![doc = include_str!("../../examples/service.rs")]
//! ```
//!
//! # An HTTP handler
//!
//! ```no_run
#![doc = include_str!("../../examples/axum_idempotency.rs")]
//! ```
//!
//! # A database that refuses late writes
//!
//! ```no_run
#![doc = include_str!("../../examples/fenced_sql.rs")]
//! ```
