//! The second step of a pass: decides every write. Pure: same inputs, same plan.

mod brake;
mod planner;
mod render;
mod steps;

#[cfg(test)]
mod tests;

pub use brake::{ForeignObjects, Hold, describe_owner, find_adoption, find_excess, find_single_holds};
pub use planner::{AppliedState, PlanError, PlanInputs, find_done, is_owned, is_proved, make_plan};
pub use render::render_plan;
pub use steps::{Delete, Plan, WaitingTurn, Write};
