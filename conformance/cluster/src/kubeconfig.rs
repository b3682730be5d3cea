//! `kubeconfig`: a cluster that is there already and belongs to someone. Nothing is started, and nothing is done
//! outside of namespaces that were created for it.

use std::path::PathBuf;

use kube::config::Kubeconfig as File;

use crate::access::Access;
use crate::client::in_cluster;
use crate::error::ClusterError;
use crate::name::ProviderName;
use crate::namespaces::Namespaces;
use crate::provider::{Cluster, Options, Provider};

/// Uses clusters that are there already.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// The file.
    pub path: PathBuf,
    /// The context: named by the user, never taken from the file.
    pub context: Option<String>,
    /// Whether the user said that this cluster may be used.
    pub confirmed: bool,
}

impl Kubeconfig {
    /// Sees that the user named a cluster and meant it, and starts nothing.
    pub fn open(&self) -> Result<ForeignCluster, ClusterError> {
        let path = self.path.display();
        let file = File::read_from(&self.path).map_err(|error| mistake(format!("{path}: {error}")))?;
        let known: Vec<&str> = file.contexts.iter().map(|context| context.name.as_str()).collect();
        let known = known.join(", ");
        let Some(context) = &self.context else {
            return Err(mistake(format!("--cluster kubeconfig needs --context; {path} has {known}")));
        };
        if !file.contexts.iter().any(|known| known.name == *context) {
            return Err(mistake(format!("{path} has no context {context:?}; it has {known}")));
        }
        if !self.confirmed {
            return Err(mistake(format!(
                "--cluster kubeconfig uses the cluster of context {context:?}: say --yes-use-this-cluster if it may"
            )));
        }
        let server = server_of(&file, context).unwrap_or_default();
        let access = Access {
            server,
            authority_pem: None,
            token: None,
            client_certificate: None,
            kubeconfig: self.path.clone(),
            context: Some(context.clone()),
        };
        let version = in_cluster(&access, async |client: kube::Client| client.apiserver_version().await)?;
        Ok(ForeignCluster { namespaces: Namespaces::new(access.clone()), access, version: version.git_version })
    }
}

fn mistake(words: String) -> ClusterError {
    ClusterError::Mistake(words)
}

fn server_of(file: &File, context: &str) -> Option<String> {
    let context = file.contexts.iter().find(|known| known.name == context)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|known| known.name == context.cluster)?;
    cluster.cluster.as_ref()?.server.clone()
}

impl Provider for Kubeconfig {
    fn name(&self) -> ProviderName {
        ProviderName::Kubeconfig
    }

    fn start(&self, _: &Options) -> Result<Box<dyn Cluster>, ClusterError> {
        Ok(Box::new(self.open()?))
    }
}

/// Someone's cluster. Dropping it deletes the namespaces that were created, and nothing else.
pub struct ForeignCluster {
    namespaces: Namespaces,
    access: Access,
    version: String,
}

impl Cluster for ForeignCluster {
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
