//! The contract of the store: what every implementation does, on real databases.

mod audit;
mod concurrency;
mod deliveries;
mod fleet;
mod keys;
mod migrations;
mod model;
mod sequences;
mod support;
mod targeting;
