//! Controllers in the simulated world, as one test binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod database_exploration;
mod database_reconciliation;
mod database_support;
mod self_healing_exploration;
mod self_healing_nodes;
mod self_healing_properties;
mod self_healing_suite;
mod self_healing_support;
mod shapes_exploration;
mod shapes_ownership;
mod shapes_support;

/// A simulated world consists of small objects; with the system allocator a third of the time is spent on allocation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
