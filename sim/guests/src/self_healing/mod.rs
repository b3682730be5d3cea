//! The self-healing controller: an `Agent` becomes a ServiceAccount, a Secret, a Service and a Deployment, and stays so.
//!
//! An `Agent` here is a custom resource, and not Sindri's agent. It names a `ModelConfig`, which names a Secret with a key:
//! a change of any of them changes the pods. The controller watches the agents, their children, and the objects to which they
//! refer; besides, it reconciles every agent periodically.
//!
//! One reconciliation observes, plans, acts and reports: [`plan()`] is a pure function, [`Reconciler`] executes the plan,
//! [`Controller`] decides when. [`Variant`] lists the mistakes that it can make on purpose.

mod children;
mod controller;
mod crd;
mod plan;
mod reconciler;
mod references;
mod status;
mod variant;

pub use children::{CHILDREN, CONFIG_ANNOTATION, Child, Config, MANAGER, MANAGER_LABEL, NAME_LABEL, desired_child};
pub use controller::{Controller, RESYNC};
pub use crd::{AGENT, MODEL_CONFIG, SECRET, crds};
pub use plan::{ObservedChildren, Obstacle, Plan, Step, plan};
pub use reconciler::{ReconcileResult, Reconciler};
pub use references::{References, resolve};
pub use status::{ACCEPTED, Phase, READY, REPAIR_MAX, Report, condition};
pub use variant::Variant;
