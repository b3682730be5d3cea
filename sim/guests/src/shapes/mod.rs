//! The shapes controller: declarations are in the cluster, the things are in an API that others use too.
//!
//! Which things are its own is what the schemes of [`Scheme`] differ in. [`plan()`] is a pure function of what was
//! seen; `act.rs` carries it out; `run.rs` decides when to look. Wrong on purpose are [`Sight::Once`],
//! [`Sight::Events`], [`ByName`] and a [`Checkpoint`] that is written last.

mod act;
mod definition;
mod plan;
mod run;
mod scheme;

pub use act::{REPORT, Shapes};
pub use definition::{DECLARED_BY, RECORD_LABEL, SHAPE, THING, declared_by, definition};
pub use plan::{Plan, Step, View, plan};
pub use run::{RESYNC, Sight};
pub use scheme::{ByName, Checkpoint, FINALIZER, Finalizer, Labels, Prefix, Records, Scheme, has_finalizer};
