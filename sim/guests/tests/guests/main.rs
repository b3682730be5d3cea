//! Guests in the simulated world, one binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod database;
mod database_anywhere;
mod databases;
mod shapes;
mod shapes_anywhere;
mod things;

/// Worlds are made of small objects; with the system's allocator a third of the time goes there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
