//! One pass of one stack: observe, plan, act.

pub(crate) mod act;
mod approval;
pub(crate) mod cache;
pub(crate) mod content;
pub(crate) mod creation;
pub(crate) mod desired;
pub(crate) mod former_stacks;
pub(crate) mod ignored_values;
pub(crate) mod inventory;
pub(crate) mod observe;
pub(crate) mod order;
pub(crate) mod plan;
mod recovery;
pub(crate) mod resolve;
pub(crate) mod run;
pub(crate) mod stage;
pub(crate) mod summary;
