//! The cluster as the agent uses it: a few verbs on objects of any kind, each retried by the one policy.

mod call;
mod connect;
mod discovery;
mod error;
mod objects;
mod rewritten;
mod watch;

pub use call::Cluster;
pub use connect::{ConnectError, kube_client};
pub use discovery::Resource;
pub use error::{ClusterError, Retry};
pub use objects::{Applied, Deletion, Fingerprint, LiveObject, Mode, version_number};
pub use watch::{Change, Changes};
