//! Flags of the commands, and the clusters that they mean.

use std::path::PathBuf;

use clap::Args;
use sindri_cluster::{
    ClusterError, ContainerProvider, Home, KindProvider, LocalProvider, Options, Provider, ProviderName, SimProvider,
    Stop, Version,
};

/// Name in error messages.
pub const PROGRAM: &str = "sindri-cluster";

/// Flags of a cluster to start.
#[derive(Args, Clone)]
pub struct ClusterFlags {
    /// Provider: local, container, kind or sim.
    #[arg(long, value_name = "PROVIDER")]
    pub cluster: ProviderName,
    /// Version of Kubernetes.
    #[arg(long, value_name = "VERSION", default_value_t)]
    pub version: Version,
    /// Only an API server: no controllers, no scheduler and no node.
    #[arg(long)]
    pub pristine: bool,
    /// Port of the API server [default: a free one].
    #[arg(long)]
    pub port: Option<u16>,
    /// Keep its directory with all logs after its end.
    #[arg(long)]
    pub keep: bool,
    /// Name [default: the provider and a number].
    #[arg(long)]
    pub name: Option<String>,
}

/// Flags of an existing cluster.
#[derive(Args, Clone)]
pub struct KubeconfigFlags {
    /// For --cluster kubeconfig: the file [default: $KUBECONFIG].
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// For --cluster kubeconfig: the context in it.
    #[arg(long)]
    pub context: Option<String>,
    /// For --cluster kubeconfig: confirms that this cluster may be used.
    #[arg(long)]
    pub yes_use_this_cluster: bool,
}

impl ClusterFlags {
    pub fn options(&self, stop: &Stop) -> Options {
        Options {
            version: self.version,
            pristine: self.pristine,
            port: self.port,
            keep: self.keep,
            stop: stop.clone(),
            ..Options::default()
        }
    }

    pub fn provider(&self, home: &Home) -> Result<Box<dyn Provider>, ClusterError> {
        match self.cluster {
            ProviderName::Local => Ok(Box::new(LocalProvider::new(home.clone()))),
            ProviderName::Container => Ok(Box::new(ContainerProvider::new(home.clone()))),
            ProviderName::Kind => Ok(Box::new(KindProvider::default())),
            ProviderName::Sim => {
                let own = std::env::current_exe().map_err(|error| ClusterError::Usage(error.to_string()))?;
                Ok(Box::new(SimProvider::beside(&own).full()))
            }
            ProviderName::Kubeconfig => Err(ClusterError::Usage(
                "--cluster kubeconfig is an existing cluster: there is nothing to start".to_owned(),
            )),
        }
    }
}
