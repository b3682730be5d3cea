//! The cluster as the agent uses it: reads and writes of objects of any kind, each request retried by one policy.

pub(crate) mod concurrency;
mod connect;
mod discovery;
mod error;
mod limits;
mod live_object;
pub(crate) mod namespaces;
mod objects;
pub(crate) mod ownership;
pub(crate) mod reflector;
mod requests;
mod resource;
mod response_object;
mod retry;
mod rewritten_field;
mod unserved_kind;
mod watch;
pub(crate) mod write_gate;

pub use connect::{ConnectError, Sender, UNACKNOWLEDGED_MAX, kube_client, sender};
pub(crate) use discovery::ListedTypes;
pub use error::{ClusterError, FailedOperation, Retry};
pub use limits::Limits;
pub use live_object::{LiveObject, Owner};
pub use objects::{AppliedObject, ApplyMode, ApplyPatch, Cluster, DeleteResult};
pub use resource::{ApiResource, is_built_in_group};
pub use response_object::AppliedFieldsHash;
pub use retry::RetryPolicy;
