//! The interpreter of scenarios: carries out the steps in an environment and checks the expectations.
//!
//! Left out: properties that every scenario must have (the oracles), which a run checks.

mod await_condition;
mod conditions;
mod convergence;
mod expectations;
mod objects;
mod operator;
mod proposal;
mod served_kind;
mod state;
mod steps;
mod substitution;
mod world_end;

pub use state::Interpreter;
