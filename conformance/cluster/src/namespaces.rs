//! Namespaces in an existing cluster: everything is done in namespaces that were created for it, which are deleted at the end.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::access::Access;
use crate::client::in_cluster;
use crate::error::ClusterError;

/// Label of every namespace that was created here, to find those that a killed program left behind.
pub const LABEL: &str = "sindri.dev/created-for-tests";
/// Maximum number of namespaces at a time.
const NAMESPACES_MAX: usize = 64;

/// Namespaces that were created here.
pub struct Namespaces {
    access: Access,
    created: BTreeSet<String>,
}

impl Namespaces {
    /// Creates an empty set for a cluster.
    pub fn new(access: Access) -> Self {
        Self { access, created: BTreeSet::new() }
    }

    /// Creates a namespace with this prefix and a random suffix.
    pub fn create(&mut self, prefix: &str) -> Result<String, ClusterError> {
        if self.created.len() >= NAMESPACES_MAX {
            return Err(ClusterError::Usage(format!("{NAMESPACES_MAX} namespaces were created already")));
        }
        let name = format!("{prefix}-{:010x}", RandomState::new().hash_one(prefix) >> 24);
        let labels = Some([(LABEL.to_owned(), "true".to_owned())].into());
        let metadata = ObjectMeta { name: Some(name.clone()), labels, ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        in_cluster(&self.access, async |client: Client| {
            Api::<Namespace>::all(client).create(&PostParams::default(), &namespace).await
        })?;
        self.created.insert(name.clone());
        Ok(name)
    }

    /// Checks that a namespace is one of these. To be called before anything is done in it.
    pub fn require<'a>(&self, name: &'a str) -> Result<&'a str, ClusterError> {
        if self.created.contains(name) {
            return Ok(name);
        }
        Err(ClusterError::Usage(format!("namespace {name:?} was not created here: it is not used")))
    }

    /// Deletes all of them. Then the cluster deletes their content.
    pub fn delete_all(&mut self) -> Result<(), ClusterError> {
        while let Some(name) = self.created.first().cloned() {
            in_cluster(&self.access, async |client: Client| delete(client, &name).await)?;
            self.created.remove(&name);
        }
        Ok(())
    }
}

async fn delete(client: Client, name: &str) -> Result<(), kube::Error> {
    match Api::<Namespace>::all(client).delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        if let Err(error) = self.delete_all() {
            eprintln!("namespaces {:?} may be left behind (label {LABEL}): {error}", self.created);
        }
    }
}
