//! The second step of a pass: decides every write. Pure: same inputs, same plan.

mod brake;
mod planner;
mod render;
mod stage;

#[cfg(test)]
mod tests;

pub use brake::{Hold, Strangers, holds};
pub use planner::{Delete, Observed, Plan, Refusal, Settled, Write, plan};
pub use stage::Stage;
