//! The Database controller: a declared database becomes a Secret, a Service and a StatefulSet.
//!
//! One reconciliation observes, plans, acts and reports: [`plan()`] is a pure function, [`Reconciler`] executes the plan,
//! [`Controller`] decides when: it reconciles at once after its own writes, to verify them, and later after an error. It
//! writes with plain create and update requests, and finds its children by name.
//! [`Variant`] lists the mistakes that it can make on purpose.

mod children;
mod controller;
mod crd;
mod plan;
mod reconciler;
mod status;
mod variant;

pub use children::{CHILDREN, Child, MANAGER, MANAGER_LABEL, NAME_LABEL, desired_child, is_owned_by};
pub use controller::{Controller, RESYNC, TRANSIENT_DELAY, UNKNOWN_DELAY};
pub use crd::{DATABASE, crd};
pub use plan::{ObservedChildren, Obstacle, Plan, Step, plan};
pub use reconciler::{ReconcileResult, Reconciler};
pub use status::{APPLIED, READY, condition_status};
pub use variant::{ChildNames, Comparison, StatusOrder, UpdateMode, Variant};
