//! A small simulated world for a controller: API servers, hosts on which guests run, another client of the same API
//! servers, faults, and oracles that check every write.
//!
//! The engine, the network and the simulated API server are the same as in the simulation of broker and agent.

mod faults;
mod journal;
mod other_client;
mod pods;
mod process;
mod recovery;
mod world;

pub use journal::{GUEST, describe, is_guest_write};
pub use pods::{NODE, POD};
pub use process::Process;
pub use sindri_apiserver::{Fault, PodOutcome, PodRule};
pub use sindri_world::engine::EngineKind;
pub use sindri_world::exploration::{FaultKind, RequestFault};
pub use world::{Oracle, State, World, simulate};
