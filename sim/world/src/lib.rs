//! The simulated world: production broker and agents as hosts on virtual time, simulated API servers, faults,
//! oracles and a trace.
//!
//! The seed of a run decides everything in it. Nothing here is known to `system/`: what differs from
//! production is handed in where the hosts are made.

pub mod chaos;
pub mod dice;
pub mod disk;
pub mod engine;
pub mod gate;
mod hosts;
mod isolate;
pub mod ledger;
mod net;
pub mod oracle;
pub mod play;
pub mod run;
pub mod scenario;
pub mod shim;
pub mod stage;
pub mod trace;

pub use hosts::{api_server, entropy_source, wall_time};
pub use isolate::isolate;
