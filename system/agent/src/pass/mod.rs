//! One pass of one stack: observe, plan, act.

pub(crate) mod act;
pub(crate) mod approval;
pub(crate) mod foreign_objects;
pub(crate) mod inventory;
pub(crate) mod observe;
pub(crate) mod plan;
pub(crate) mod run;
