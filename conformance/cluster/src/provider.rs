//! The interface of all providers of clusters.

use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::error::ClusterError;
use crate::name::ProviderName;
use crate::namespaces::Namespaces;
use crate::stop::Stop;
use crate::version::Version;

/// Options of a cluster. A provider ignores options that it does not support.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Version of Kubernetes.
    pub version: Version,
    /// True for an API server without controllers, scheduler and node.
    pub pristine: bool,
    /// True for controllers of workloads and a node on which pods run; only the simulated API server can be without them.
    pub runs_pods: bool,
    /// Port of the API server; `None`: a free one.
    pub port: Option<u16>,
    /// Directory to create for its files; `None`: one in the directory for temporary files.
    pub directory: Option<PathBuf>,
    /// True if its directory with all logs is kept after the end.
    pub keep: bool,
    /// Interrupts a start in progress.
    pub stop: Stop,
}

/// A provider of clusters.
pub trait Provider: Send + Sync {
    /// Its name.
    fn name(&self) -> ProviderName;

    /// Starts a cluster and waits until it is ready. Blocks the thread.
    fn start(&self, options: &Options) -> Result<Box<dyn Cluster>, ClusterError>;
}

/// A running cluster. Dropping it ends everything that was started for it.
pub trait Cluster: Send {
    /// Address and credentials.
    fn access(&self) -> &Access;

    /// Version that it reports, such as `v1.35.4`.
    fn version(&self) -> &str;

    /// Checks that it still runs.
    fn check(&mut self) -> Result<(), ClusterError>;

    /// Its processes on this machine, with their names, for measurements.
    fn processes(&self) -> Vec<(String, u32)> {
        Vec::new()
    }

    /// Namespaces to which a user of an existing cluster is restricted; `None` for a cluster that was started here.
    fn namespaces(&mut self) -> Option<&mut Namespaces> {
        None
    }

    /// Directory of its logs, if they are files of this machine.
    fn logs(&self) -> Option<&Path> {
        None
    }
}
