//! The cluster as the agent uses it: a few verbs on objects of any kind, each retried by the one policy.

pub(crate) mod concurrency;
mod connect;
mod discovery;
mod error;
pub(crate) mod ignore;
mod objects;
pub(crate) mod ownership;
pub(crate) mod reflector;
mod requests;
mod response_object;
pub(crate) mod retry;
mod rewritten_field;
pub(crate) mod shutdown;
mod watch;
pub(crate) mod write_gate;

pub use connect::{ConnectError, Sender, kube_client, sender};
pub use discovery::Resource;
pub use error::{ClusterError, Retry};
pub use objects::{Applied, Deletion, LiveObject, Mode, Patch, version_number};
pub use requests::Cluster;
pub use response_object::Fingerprint;
pub use watch::{Change, Changes};
