//! Namespaces in a cluster that belongs to someone else: what is done there is done in namespaces that were created
//! for it, and nowhere else. They are deleted at the end.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::access::Access;
use crate::client::in_cluster;
use crate::error::ClusterError;

/// Marks every namespace that was created here: what a program that was killed left behind is found by it.
pub const LABEL: &str = "sindri.dev/created-for-tests";
/// Namespaces at a time.
const NAMESPACES_MAX: usize = 64;

/// The namespaces that were created.
pub struct Namespaces {
    access: Access,
    created: BTreeSet<String>,
}

impl Namespaces {
    /// None yet.
    pub fn new(access: Access) -> Self {
        Self { access, created: BTreeSet::new() }
    }

    /// Creates one; its name begins as wanted and is otherwise random.
    pub fn create(&mut self, begins: &str) -> Result<String, ClusterError> {
        if self.created.len() >= NAMESPACES_MAX {
            return Err(ClusterError::Mistake(format!("{NAMESPACES_MAX} namespaces were created already")));
        }
        let name = format!("{begins}-{:010x}", RandomState::new().hash_one(begins) >> 24);
        let labels = Some([(LABEL.to_owned(), "true".to_owned())].into());
        let metadata = ObjectMeta { name: Some(name.clone()), labels, ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        in_cluster(&self.access, async |client: Client| {
            Api::<Namespace>::all(client).create(&PostParams::default(), &namespace).await
        })?;
        self.created.insert(name.clone());
        Ok(name)
    }

    /// Sees that a namespace is one of these: whoever is about to do something asks first.
    pub fn require<'a>(&self, name: &'a str) -> Result<&'a str, ClusterError> {
        if self.created.contains(name) {
            return Ok(name);
        }
        Err(ClusterError::Mistake(format!("namespace {name:?} was not created here: nothing is done in it")))
    }

    /// Deletes all of them. Their content goes with them, after a while.
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
            eprintln!("namespaces {:?} may be left (label {LABEL}): {error}", self.created);
        }
    }
}
