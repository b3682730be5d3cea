//! The Database controller: a declared database becomes a Secret, a Service and a Deployment.
//!
//! Observe, plan, act, report: [`plan()`] is a pure function, `act.rs` carries it out, `run.rs` decides when.
//! It writes by plain create and update, and finds its children by name. The manners that are wrong on purpose
//! are in [`Manner`].

mod act;
mod children;
mod compare;
mod definition;
mod manner;
mod plan;
mod run;
mod status;

pub use act::{Outcome, Reconciler};
pub use children::{CHILDREN, Child, MANAGER, MANAGER_LABEL, NAME_LABEL, desired, is_owned_by};
pub use compare::{covers, overlay};
pub use definition::{DATABASE, definition};
pub use manner::{Manner, Names, Reports, Updates};
pub use plan::{Observed, Obstacle, Plan, Step, plan};
pub use run::Controller;
pub use status::{APPLIED, READY, condition};
