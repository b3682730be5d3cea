//! The shapes controller: shapes are custom resources in the cluster, their resources are in an external API that other
//! clients use too, or that it has for itself ([`Exclusive`]).
//!
//! The [`OwnershipScheme`]s differ in how the controller recognizes its own resources. [`plan()`] is a pure function of
//! the observed state; [`ShapesController`] executes it, and `run.rs` decides when. Wrong on purpose are
//! [`ResyncMode::AtStart`], [`ResyncMode::EventsOnly`], [`ByName`], a [`Checkpoint`] that is written last, and one that the
//! garbage collector deletes ([`RecordForm::OwnedShapeRef`]).

mod controller;
mod crd;
mod observed;
mod ownership;
mod plan;
mod records;
mod resource;
mod resync;
mod run;

pub use controller::{REPORT, ShapesController};
pub use crd::{SHAPE, SHAPE_REF, crds};
pub use observed::ObservedShapes;
pub use ownership::{
    ByName, Checkpoint, Exclusive, FINALIZER, Finalizer, Labels, OwnershipScheme, Prefix, RecordTiming, has_finalizer,
};
pub use plan::{Plan, Step, plan};
pub use records::{RECORD_LABEL, RecordForm};
pub use resource::{DECLARED_BY, RESOURCE, declared_by};
pub use resync::{RESYNC, ResyncMode};
