//! Tests of the simulated world, one binary.

mod engine;
mod stories;
