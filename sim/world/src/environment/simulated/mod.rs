//! The simulated environment: the production broker and agents as hosts, a simulated API server per cluster.

mod fault_schedule;
mod lasting_faults;
mod options;
mod world;

pub use options::Options;
pub use world::SimulatedWorld;
