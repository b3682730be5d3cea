//! Which kinds the cluster serves, and where: two calls for all of them, asked again on a miss.
//!
//! A group whose server does not answer is kept apart from one that is not there: nothing is concluded from its absence.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sindri_client::encoded;
use sindri_model::ObjectKey;

use super::error::ClusterError;
use super::requests::{Call, Cluster, Operation};

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

/// The two documents that together list everything: the core group, and all others.
const ROOTS: [&str; 2] = ["/api", "/apis"];
/// In one document all groups, with their versions and kinds. Older servers answer with a list of groups.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// What was found so far.
#[derive(Default)]
pub(super) struct Discovery {
    known: BTreeMap<String, Versions>,
    etags: [Option<String>; ROOTS.len()],
}

/// The versions of a group, as the server prefers them.
type Versions = Vec<(String, Served)>;

/// What a version of a group serves.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Served {
    Kinds(Vec<Arc<Resource>>),
    /// That was not said: the server of the group did not answer, or lists only groups.
    Unsaid,
}

impl Discovery {
    fn find(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        match self.served(group, version)? {
            Served::Kinds(resources) => resources.iter().find(|resource| resource.kind == kind).cloned(),
            Served::Unsaid => None,
        }
    }

    fn served(&self, group: &str, version: &str) -> Option<&Served> {
        self.known.get(group)?.iter().find(|(known, _)| known == version).map(|(_, served)| served)
    }

    fn note(&mut self, group: &str, version: &str, kinds: &[Arc<Resource>]) {
        let versions = self.known.get_mut(group).into_iter().flatten();
        for (_, served) in versions.filter(|(known, _)| known == version) {
            *served = Served::Kinds(kinds.to_vec());
        }
    }

    /// Takes in one of the two documents.
    fn renew(&mut self, root: usize, etag: Option<String>, groups: BTreeMap<String, Versions>) {
        self.known.retain(|group, _| group.is_empty() != (root == 0));
        self.known.extend(groups);
        self.etags[root] = etag;
    }
}

impl Cluster {
    /// The resource of a kind; `None` when the cluster answers that it does not serve it.
    pub async fn resource(
        &self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Arc<Resource>>, ClusterError> {
        let known = self.discovery.lock().await.find(group, version, kind);
        if known.is_some() {
            return Ok(known);
        }
        // Not while what is known is locked: a server that does not answer would hold up everybody.
        self.discover(usize::from(!group.is_empty())).await?;
        let served = self.discovery.lock().await.served(group, version).cloned();
        let kinds = match served {
            Some(served) => self.kinds(group, version, served).await?,
            None => Vec::new(),
        };
        Ok(kinds.into_iter().find(|resource| resource.kind == kind))
    }

    /// The resource of a kind in whichever version serves it, this one first; `None` when none does.
    pub async fn resource_in_any_version(&self, known: &Resource) -> Result<Option<Arc<Resource>>, ClusterError> {
        if let Some(found) = self.resource(&known.group, &known.version, &known.kind).await? {
            return Ok(Some(found));
        }
        let versions = self.discovery.lock().await.known.get(&known.group).cloned().unwrap_or_default();
        for (version, served) in versions {
            let kinds = self.kinds(&known.group, &version, served).await?;
            if let Some(found) = kinds.into_iter().find(|resource| resource.kind == known.kind) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Every kind that can be listed, in every version that is served.
    pub async fn listable_resources(&self) -> Result<Vec<Arc<Resource>>, ClusterError> {
        for root in 0..ROOTS.len() {
            self.discover(root).await?;
        }
        let known = self.discovery.lock().await.known.clone();
        let mut resources = Vec::new();
        for (group, versions) in known {
            for (version, served) in versions {
                let kinds = self.kinds(&group, &version, served).await?;
                // Whoever has one namespace sees nothing of what is in none.
                resources.extend(kinds.into_iter().filter(|kind| kind.namespaced || self.scope().is_none()));
            }
        }
        Ok(resources)
    }

    /// Forgets a group, so that it is asked for again: a definition in it changed.
    pub async fn forget_group(&self, group: &str) {
        let mut discovery = self.discovery.lock().await;
        discovery.known.remove(group);
        // What is forgotten has to be told again, even if nothing of it has changed.
        discovery.etags = Default::default();
    }

    /// Asks what there is, unless it is as it was.
    async fn discover(&self, root: usize) -> Result<(), ClusterError> {
        let mut call = Call::get(Operation::Said("list the kinds that are served".to_owned()), ROOTS[root].to_owned());
        call.accept = AGGREGATED;
        call.if_none_match = self.discovery.lock().await.etags[root].clone();
        let answer = self.send_for_answer(&call).await?;
        if answer.status != StatusCode::NOT_MODIFIED {
            let groups = groups(&answer.read(&call)?);
            self.discovery.lock().await.renew(root, answer.etag, groups);
        }
        Ok(())
    }

    /// The kinds of a group; what was not said is asked of the group itself.
    async fn kinds(&self, group: &str, version: &str, served: Served) -> Result<Vec<Arc<Resource>>, ClusterError> {
        if let Served::Kinds(kinds) = served {
            return Ok(kinds);
        }
        let operation = format!("list the kinds of {}", api_version(group, version));
        let kinds = match self.send(&Call::get(Operation::Said(operation), root(group, version))).await {
            Ok(list) => listable(group, version, &list),
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        self.discovery.lock().await.note(group, version, &kinds);
        Ok(kinds)
    }
}

/// Reads either form of a document.
fn groups(document: &Value) -> BTreeMap<String, Versions> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match document["kind"].as_str() {
        Some("APIGroupDiscoveryList") => list(&document["items"])
            .iter()
            .map(|group| {
                let name = text(&group["metadata"]["name"]);
                let versions = list(&group["versions"]).iter().map(|version| aggregated(&name, version)).collect();
                (name, versions)
            })
            .collect(),
        Some("APIVersions") => {
            let versions = list(&document["versions"]).iter().map(|version| (text(version), Served::Unsaid)).collect();
            BTreeMap::from([(String::new(), versions)])
        }
        _ => list(&document["groups"])
            .iter()
            .map(|group| {
                let versions = list(&group["versions"]);
                (text(&group["name"]), versions.iter().map(|one| (text(&one["version"]), Served::Unsaid)).collect())
            })
            .collect(),
    }
}

fn aggregated(group: &str, version: &Value) -> (String, Served) {
    let name = version["version"].as_str().unwrap_or_default().to_owned();
    // What a server says of a group that did not answer it is old, or nothing.
    if version["freshness"] == "Stale" {
        return (name, Served::Unsaid);
    }
    let resources = version["resources"].as_array().into_iter().flatten();
    let kinds = resources
        .filter(|resource| resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list")))
        .filter_map(|resource| {
            Some(Arc::new(Resource {
                group: group.to_owned(),
                version: name.clone(),
                kind: resource["responseKind"]["kind"].as_str()?.to_owned(),
                plural: resource["resource"].as_str()?.to_owned(),
                namespaced: resource["scope"] == "Namespaced",
            }))
        });
    let kinds = Served::Kinds(kinds.collect());
    (name, kinds)
}

/// Subresources and what cannot be listed are left out.
fn listable(group: &str, version: &str, list: &Value) -> Vec<Arc<Resource>> {
    let resources = list["resources"].as_array().into_iter().flatten();
    resources
        .filter(|resource| resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list")))
        .filter_map(|resource| {
            let plural = resource["name"].as_str().filter(|name| !name.contains('/'))?;
            Some(Arc::new(Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: resource["kind"].as_str()?.to_owned(),
                plural: plural.to_owned(),
                namespaced: resource["namespaced"].as_bool()?,
            }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn served(document: &Value, group: &str) -> Versions {
        groups(document).remove(group).unwrap()
    }

    #[test]
    fn a_group_that_does_not_answer_is_not_one_that_is_not_there() {
        let kind = |kind: &str, plural: &str, scope: &str, verbs: &[&str]| json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": verbs});
        let document = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "apps"}, "versions": [
                {"version": "v1", "freshness": "Current", "resources": [
                    kind("Deployment", "deployments", "Namespaced", &["get", "list"]),
                    kind("Scale", "scales", "Namespaced", &["get"]),
                ]},
            ]},
            {"metadata": {"name": "metrics.example"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
        ]});
        let Served::Kinds(kinds) = served(&document, "apps").remove(0).1 else { panic!("it was said") };
        assert_eq!(kinds.iter().map(|kind| kind.plural.as_str()).collect::<Vec<_>>(), ["deployments"]);
        assert_eq!(served(&document, "metrics.example"), [("v1beta1".to_owned(), Served::Unsaid)]);
        assert_eq!(groups(&document).get("gone.example"), None);
    }

    #[test]
    fn a_server_that_lists_only_groups_is_asked_for_each() {
        let core = json!({"kind": "APIVersions", "versions": ["v1"]});
        assert_eq!(served(&core, ""), [("v1".to_owned(), Served::Unsaid)]);
        let others = json!({"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [{"version": "v1"}]}]});
        assert_eq!(served(&others, "apps"), [("v1".to_owned(), Served::Unsaid)]);
    }
}
