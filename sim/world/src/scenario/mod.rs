//! Scenario files: one story each, in YAML. This is their language and how a file is read.
//!
//! Left out: what the verbs do, which is [`crate::play`]'s business. A file that makes no sense is refused
//! with its name and line before anything runs.

mod duration;
mod language;
mod library;

pub use duration::Span;
pub use language::{
    Activation, AgentRef, Annotating, AskedCheck, Await, ChangeObject, ClusterFault, ClusterRef, ConditionCheck, Count,
    CreateObject, EventCheck, Expectation, Fleet, HeartbeatCheck, Labelling, Latency, Link, ObjectCheck, ObjectRef,
    Quiet, Restore, Retried, Said, Scenario, StackRef, StateCheck, Step, Submit, Targeting, Written,
};
pub use library::{Library, ScenarioError};
