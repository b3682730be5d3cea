//! One suite for any cluster: scenarios run with real processes on real ports.
//!
//! Scenarios, their steps and their expectations belong to `sindri-world`; here are the real processes, the choice of the
//! cluster, and the report. Left out: faults that only a simulated network or a simulated API server can have. A scenario that
//! needs one is reported as not runnable, never as passed.

pub mod binaries;
pub mod cluster_api;
mod faults;
pub mod installation;
pub mod keys;
pub mod metrics;
mod orphan_cleanup;
pub mod process;
pub mod providers;
pub mod rbac;
mod real_environment;
pub mod report;
mod rewrite;
pub mod runtime;
pub mod suite;
mod webhook;
pub mod workspace;
