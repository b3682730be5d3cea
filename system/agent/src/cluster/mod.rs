//! The cluster as the agent uses it: a few verbs on objects of any kind, each retried by the one policy.

mod call;
mod connect;
mod discovery;
mod error;
mod objects;
mod received;
mod rewritten;
mod watch;

pub use call::Cluster;
pub use connect::{ConnectError, Sender, kube_client, sender};
pub use discovery::Resource;
pub use error::{ClusterError, Retry};
pub use objects::{Applied, Deletion, LiveObject, Mode, Patch, version_number};
pub use received::Fingerprint;
pub use watch::{Change, Changes};
