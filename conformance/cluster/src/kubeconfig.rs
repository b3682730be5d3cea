//! Provider `kubeconfig`: an existing cluster that other people may use. Nothing is started, and nothing is written outside of
//! namespaces that were created for it.

use std::path::PathBuf;

use kube::config::Kubeconfig as File;

use crate::access::Access;
use crate::client::in_cluster;
use crate::error::ClusterError;
use crate::name::ProviderName;
use crate::namespaces::Namespaces;
use crate::provider::{Cluster, Options, Provider};

/// Gives access to an existing cluster.
#[derive(Clone, Debug)]
pub struct KubeconfigProvider {
    /// Kubeconfig file.
    pub path: PathBuf,
    /// Context, given by the user; the current context of the file is not used.
    pub context: Option<String>,
    /// True if the user confirmed that this cluster may be used.
    pub confirmed: bool,
}

impl KubeconfigProvider {
    /// Checks that the user named a context and confirmed its use, and connects.
    pub fn open(&self) -> Result<ExistingCluster, ClusterError> {
        let path = self.path.display();
        let file = File::read_from(&self.path).map_err(|error| usage(format!("{path}: {error}")))?;
        let known: Vec<&str> = file.contexts.iter().map(|context| context.name.as_str()).collect();
        let known = known.join(", ");
        let Some(context) = &self.context else {
            return Err(usage(format!("--cluster kubeconfig needs --context; {path} has {known}")));
        };
        if !file.contexts.iter().any(|known| known.name == *context) {
            return Err(usage(format!("{path} has no context {context:?}; it has {known}")));
        }
        if !self.confirmed {
            return Err(usage(format!(
                "--cluster kubeconfig uses the cluster of context {context:?}: confirm it with --yes-use-this-cluster"
            )));
        }
        let server = find_server(&file, context).unwrap_or_default();
        let access = Access {
            server,
            authority_pem: None,
            token: None,
            client_certificate: None,
            kubeconfig: self.path.clone(),
            context: Some(context.clone()),
        };
        let version = in_cluster(&access, async |client: kube::Client| client.apiserver_version().await)?;
        Ok(ExistingCluster { namespaces: Namespaces::new(access.clone()), access, version: version.git_version })
    }
}

fn usage(message: String) -> ClusterError {
    ClusterError::Usage(message)
}

fn find_server(file: &File, context: &str) -> Option<String> {
    let context = file.contexts.iter().find(|known| known.name == context)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|known| known.name == context.cluster)?;
    cluster.cluster.as_ref()?.server.clone()
}

impl Provider for KubeconfigProvider {
    fn name(&self) -> ProviderName {
        ProviderName::Kubeconfig
    }

    fn start(&self, _: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        Ok(Box::new(self.open()?))
    }
}

/// An existing cluster. Dropping it deletes the namespaces that were created here, and nothing else.
pub struct ExistingCluster {
    namespaces: Namespaces,
    access: Access,
    version: String,
}

impl Cluster for ExistingCluster {
    fn access(&self) -> &Access {
        &self.access
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn check(&mut self) -> Result<(), ClusterError> {
        in_cluster(&self.access, async |client: kube::Client| client.apiserver_version().await).map(drop)
    }

    fn namespaces(&mut self) -> Option<&mut Namespaces> {
        Some(&mut self.namespaces)
    }
}
