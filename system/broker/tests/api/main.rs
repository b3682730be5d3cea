//! The broker's API, asked in process: no sockets except where the socket is the point.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod approvals;
mod bad_input;
mod delivered;
mod durability;
mod edge;
mod encrypted;
mod events;
mod fleet;
mod fuzz;
mod gzip;
mod kept;
mod labels;
mod lists;
mod openapi;
mod over_the_wire;
mod polls;
mod process;
mod refusals;
mod secrets;
mod served;
mod stalled;
mod status;
mod support;
mod target_state;
mod target_state_model;
mod waiting;
mod webhooks;
