//! Tests of the broker's API in process; sockets only where the connection is tested.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod access;
mod admins;
mod approvals;
mod backup;
mod bad_input;
mod client;
mod compression;
mod connections;
mod database_startup;
mod deactivation;
mod durability;
mod errors;
mod events;
mod fleet;
mod fuzz;
mod held_revisions;
mod labels;
mod lists;
mod openapi;
mod polls;
mod process;
mod published_clients;
mod quotas;
mod secrets;
mod shared_address;
mod stalled_store;
mod status;
mod support;
mod target_state;
mod target_state_model;
mod test_server;
mod tls;
mod waiting_polls;
mod webhook_delivery;
mod webhooks;
