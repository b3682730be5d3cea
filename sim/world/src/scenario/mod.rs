//! Scenario files: their language, and reading and checking them. A file that makes no sense is rejected with its name
//! and line before anything runs.
//!
//! Left out: carrying out the steps, which is the task of [`crate::interpreter`].

mod document;
mod duration;
mod expectation;
mod fleet;
mod library;
mod repeat;
mod step;
mod step_list;
mod write;

pub use document::Scenario;
pub use duration::Span;
pub use expectation::{
    ConditionCheck, Count, EventCheck, Expectation, ExpectedCondition, HeartbeatCheck, KubernetesEventCheck,
    ObjectCheck, ObjectRef, RequestCountCheck, RetryCheck, StateCheck, WritesCheck,
};
pub use fleet::{Fleet, broker_name, replica_name};
pub use library::{Library, ScenarioError};
pub use step::{
    Activation, AgentRef, Await, BrokerRef, ClusterFault, ClusterRef, CreateObject, EditObject, LabelTarget, Latency,
    Link, Propose, Quiet, Restore, StackAnnotation, StackRef, StackTarget, Step, Submit,
};
pub use step_list::StepList;
