//! The store in PostgreSQL, for several brokers behind a load balancer.
//!
//! Each call takes a connection from a bounded pool. Submissions go through one task, so that those which wait together
//! share a transaction: they would wait for each other's numbers anyway. Brokers learn of each other's changes by
//! NOTIFY, and look for changes periodically in case a notification was lost.

mod database;
mod error;
mod notifications;
mod origin;
mod pool;
mod schema;
mod session;
mod submitter;
mod tls;
mod transaction;

pub use database::PostgresStore;
pub use error::PostgresError;
pub use submitter::Submitter;
