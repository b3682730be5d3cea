//! The contract of the store: what every implementation does, on real databases.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod agent_replacement;
mod approvals;
mod audit;
mod bundle_encryption;
mod concurrency;
mod concurrent_changes;
mod database_failures;
mod database_tls;
mod deliveries;
mod events_together;
mod fleet;
mod keys;
mod large_pages;
mod migrations;
mod model;
mod overview;
mod proposals;
mod proxy;
mod rechecks;
mod retention;
mod sequences;
mod status;
mod support;
mod targeting;
mod tls_server;
