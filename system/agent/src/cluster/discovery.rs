//! Which kinds the cluster serves, and where. Cached per group and version, asked again on a miss.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sindri_client::encoded;
use sindri_model::ObjectKey;

use super::call::{Call, Cluster};
use super::error::ClusterError;

/// Where the objects of a kind are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    /// The version that is used.
    pub version: String,
    /// As manifests write it.
    pub kind: String,
    /// As paths write it.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// `group/version`, or the version alone.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The path of all objects, of one namespace, or of everything.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = root(&self.group, &self.version);
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{}/{}", encoded(namespace), self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// The path of one object.
    pub fn object_path(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.path(key.namespace.as_deref()), encoded(&key.name))
    }

    /// The kind that a CustomResourceDefinition defines, in one of its versions.
    pub fn defined_by(definition: &Value, version: &str) -> Option<Self> {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let served = spec["versions"].as_array()?.iter().any(|entry| entry["name"] == version);
        served.then_some(Self {
            group: text(&spec["group"])?,
            version: version.to_owned(),
            kind: text(&spec["names"]["kind"])?,
            plural: text(&spec["names"]["plural"])?,
            namespaced: spec["scope"] == "Namespaced",
        })
    }
}

/// `group/version`, or the version alone for the core group.
pub(super) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// What was found so far, by group and version.
#[derive(Default)]
pub(super) struct Discovery {
    known: BTreeMap<(String, String), Vec<Resource>>,
}

impl Discovery {
    fn find(&self, group: &str, version: &str, kind: &str) -> Option<Resource> {
        let resources = self.known.get(&(group.to_owned(), version.to_owned()))?;
        resources.iter().find(|resource| resource.kind == kind).cloned()
    }
}

impl Cluster {
    /// The resource of a kind; `None` when the cluster answers that it does not serve it.
    pub async fn resource(&self, group: &str, version: &str, kind: &str) -> Result<Option<Resource>, ClusterError> {
        let known = self.discovery.lock().await.find(group, version, kind);
        if known.is_some() {
            return Ok(known);
        }
        // Not while what is known is locked: a group that does not answer would hold up every other.
        let resources = self.served(group, version).await?;
        let mut discovery = self.discovery.lock().await;
        discovery.known.insert((group.to_owned(), version.to_owned()), resources);
        Ok(discovery.find(group, version, kind))
    }

    /// The resource of a kind in whichever version serves it, this one first; `None` when none does.
    pub async fn resource_in_any_version(&self, known: &Resource) -> Result<Option<Resource>, ClusterError> {
        if let Some(found) = self.resource(&known.group, &known.version, &known.kind).await? {
            return Ok(Some(found));
        }
        for version in self.versions(&known.group).await? {
            if let Some(found) = self.resource(&known.group, &version, &known.kind).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn versions(&self, group: &str) -> Result<Vec<String>, ClusterError> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let call = Call::get(format!("list the versions of {group}"), format!("/apis/{group}"));
        let answer = match self.send(&call).await {
            Ok(answer) => answer,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let versions = answer["versions"].as_array().into_iter().flatten();
        Ok(versions.filter_map(|version| version["version"].as_str().map(str::to_owned)).collect())
    }

    /// Every kind that can be listed, in every version that is served.
    pub async fn listable_resources(&self) -> Result<Vec<Resource>, ClusterError> {
        let mut resources = self.served("", "v1").await?;
        let groups = self.send(&Call::get("list the API groups".to_owned(), "/apis".to_owned())).await?;
        for group in groups["groups"].as_array().into_iter().flatten() {
            let name = group["name"].as_str().unwrap_or_default();
            for version in group["versions"].as_array().into_iter().flatten() {
                resources.extend(self.served(name, version["version"].as_str().unwrap_or_default()).await?);
            }
        }
        Ok(resources)
    }

    /// Forgets a group, so that it is asked for again: a definition in it changed.
    pub async fn forget_group(&self, group: &str) {
        self.discovery.lock().await.known.retain(|(known, _), _| known != group);
    }

    async fn served(&self, group: &str, version: &str) -> Result<Vec<Resource>, ClusterError> {
        let operation = format!("list the kinds of {}", api_version(group, version));
        match self.send(&Call::get(operation, root(group, version))).await {
            Ok(list) => Ok(listable(group, version, &list)),
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Subresources and what cannot be listed are left out.
fn listable(group: &str, version: &str, list: &Value) -> Vec<Resource> {
    let resources = list["resources"].as_array().into_iter().flatten();
    resources
        .filter(|resource| resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list")))
        .filter_map(|resource| {
            let plural = resource["name"].as_str().filter(|name| !name.contains('/'))?;
            Some(Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: resource["kind"].as_str()?.to_owned(),
                plural: plural.to_owned(),
                namespaced: resource["namespaced"].as_bool()?,
            })
        })
        .collect()
}
