//! What every kind of cluster has in common.

use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::error::ClusterError;
use crate::name::ProviderName;
use crate::namespaces::Namespaces;
use crate::stop::Stop;
use crate::version::Version;

/// What is wanted of a cluster. What a kind of cluster has no choice in, it ignores.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The version of Kubernetes.
    pub version: Version,
    /// No controllers, no scheduler and no node: only what an API server does by itself.
    pub pristine: bool,
    /// The port of the API server; a free one if none is named.
    pub port: Option<u16>,
    /// The directory to make for it; one in the directory for temporary files if none is named.
    pub directory: Option<PathBuf>,
    /// Whether its directory stays behind, for whoever wants to read all logs.
    pub keep: bool,
    /// Asks a start that is under way to end.
    pub stop: Stop,
}

/// A kind of cluster.
pub trait Provider: Send + Sync {
    /// What people call it.
    fn name(&self) -> ProviderName;

    /// Starts a cluster and waits until it works. Blocks the thread.
    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError>;
}

/// A running cluster. Dropping it ends everything that was started for it.
pub trait Cluster: Send {
    /// How it is reached.
    fn access(&self) -> &Access;

    /// The version that it says it has, as in `v1.35.4`.
    fn version(&self) -> &str;

    /// Sees that it still runs.
    fn check(&mut self) -> Result<(), ClusterError>;

    /// Its processes on this machine, by name, for who measures them.
    fn processes(&self) -> Vec<(String, u32)> {
        Vec::new()
    }

    /// The only places where something may be done, in a cluster that belongs to someone else.
    fn namespaces(&mut self) -> Option<&mut Namespaces> {
        None
    }

    /// Where its logs are, if they are files of this machine.
    fn logs(&self) -> Option<&Path> {
        None
    }
}
