//! The simulated world: the production broker and agents as hosts on virtual time, simulated API servers, faults,
//! oracles and a trace.
//!
//! The seed of a run decides everything in it. The crates below `system/` do not know that they are simulated:
//! clock, network, disk and entropy are injected where the hosts are made.

mod declared_fields;
mod disk;
pub mod engine;
pub mod environment;
mod expected_object;
pub mod expected_state;
pub mod exploration;
mod host_panic;
mod hosts;
mod http_exchanges;
pub mod http_faults;
pub mod interpreter;
mod isolate;
pub mod journal;
pub mod libc_shim;
mod net;
mod object_key;
pub mod oracle;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod trace;
mod wall_clock;
pub mod worlds;

pub use hosts::api_server;
pub use isolate::isolate;
pub use rng::entropy_source;
pub use wall_clock::wall_time;
