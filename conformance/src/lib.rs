//! One suite for any cluster: the stories of the scenario library played with real processes on real ports.
//!
//! The stories, how they are played and what they expect belong to `sindri-world`; here is the stage of real
//! processes, the choice of the cluster, and the report. Left out: faults that only a simulated network or a
//! simulated API server can have. A story that needs one is reported as not runnable here, never as passed.

pub mod afterwards;
pub mod api;
pub mod binaries;
pub mod counts;
mod faults;
pub mod keys;
pub mod page;
pub mod process;
pub mod providers;
pub mod report;
mod rewrite;
pub mod rights;
pub mod site;
pub mod stage;
pub mod suite;
pub mod waiter;
mod webhook;
