//! Resource types that the cluster serves: read with two requests, cached, and read again on a miss.
//!
//! A group whose server does not respond is distinguished from one that does not exist, so that nothing is concluded from
//! its absence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use tokio::sync::Mutex;

use super::concurrency::run_concurrently;
use super::error::ClusterError;
use super::requests::{ApiClient, ApiRequest, Operation};
use super::resource::{ApiResource, api_version, group_version_path, is_built_in_group};

/// Paths of the two discovery documents: the core group, and all other groups.
const ROOTS: [&str; 2] = ["/api", "/apis"];
/// Requests aggregated discovery: all groups with their versions and resource types in one document. Older servers return a
/// list of groups instead.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// APIServices of aggregated API servers: those that no controller of Kubernetes manages for its own groups, or for CRDs.
const AGGREGATED_APIS: &str =
    "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector=%21kube-aggregator.kubernetes.io%2Fautomanaged";

/// Cache of discovery.
#[derive(Default)]
pub(super) struct Discovery(Mutex<Cache>);

/// Discovery documents as they were last read.
#[derive(Default)]
struct Cache {
    groups: BTreeMap<String, Versions>,
    /// Groups in which a type is not found before they are read again.
    stale: BTreeSet<String>,
    aggregated: AggregatedApis,
    etags: [Option<String>; ROOTS.len()],
}

/// Names of the APIServices of aggregated API servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct AggregatedApis(BTreeSet<String>);

impl AggregatedApis {
    /// Notes in types of one version of a group if an aggregated API server serves them.
    fn mark(&self, group: &str, version: &str, resources: &mut [Arc<ApiResource>]) {
        if self.0.contains(&format!("{version}.{group}")) {
            resources.iter_mut().for_each(|resource| Arc::make_mut(resource).is_aggregated = true);
        }
    }

    fn mark_all(&self, groups: &mut BTreeMap<String, Versions>) {
        for (group, versions) in groups {
            for (version, served) in versions {
                if let ServedTypes::Listed(resources) = served {
                    self.mark(group, version, resources);
                }
            }
        }
    }

    /// Returns true if an aggregated API server serves a version of a group.
    fn has_group(&self, group: &str) -> bool {
        self.0.iter().any(|name| name.split_once('.').is_some_and(|(_, of_name)| of_name == group))
    }
}

/// Versions of a group, in the order that the server prefers.
type Versions = Vec<(String, ServedTypes)>;

/// Resource types in a version of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ServedTypes {
    Listed(Vec<Arc<ApiResource>>),
    /// Not in the document: the server of the group did not respond, or the document lists only groups.
    Unlisted,
}

/// Resource types that can be listed.
#[derive(Debug, Default)]
pub(crate) struct ListedTypes {
    /// The types of every version that could be read.
    pub resources: Vec<Arc<ApiResource>>,
    /// One error for each version of a group that could not.
    pub errors: Vec<ClusterError>,
}

impl Cache {
    fn find(&self, group: &str, version: &str, kind: &str) -> Option<Arc<ApiResource>> {
        if self.stale.contains(group) {
            return None;
        }
        match self.served(group, version)? {
            ServedTypes::Listed(resources) => resources.iter().find(|resource| resource.kind == kind).cloned(),
            ServedTypes::Unlisted => None,
        }
    }

    fn served(&self, group: &str, version: &str) -> Option<&ServedTypes> {
        self.groups.get(group)?.iter().find(|(known, _)| known == version).map(|(_, served)| served)
    }

    fn set_types(&mut self, group: &str, version: &str, resources: &[Arc<ApiResource>]) {
        let versions = self.groups.get_mut(group).into_iter().flatten();
        for (_, served) in versions.filter(|(known, _)| known == version) {
            *served = ServedTypes::Listed(resources.to_vec());
        }
    }

    /// Replaces the content of one of the two documents.
    fn replace_document(&mut self, root: usize, etag: Option<String>, groups: BTreeMap<String, Versions>) {
        let is_of_other_document = |group: &str| group.is_empty() != (root == 0);
        self.groups.retain(|group, _| is_of_other_document(group));
        self.stale.retain(|group| is_of_other_document(group));
        self.groups.extend(groups);
        self.etags[root] = etag;
    }
}

impl Discovery {
    /// Returns the resource type of a kind; `None` if the cluster does not serve it.
    pub(super) async fn find(
        &self,
        api: &ApiClient,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Arc<ApiResource>>, ClusterError> {
        let cached = self.0.lock().await.find(group, version, kind);
        if cached.is_some() {
            return Ok(cached);
        }
        // The cache is not locked during the request: a server that does not respond would block all other readers.
        self.refresh(api, usize::from(!group.is_empty())).await?;
        let served = self.0.lock().await.served(group, version).cloned();
        let resources = match served {
            Some(served) => self.list_types(api, group, version, served).await?,
            None => Vec::new(),
        };
        Ok(resources.into_iter().find(|resource| resource.kind == kind))
    }

    /// Returns the resource type in any version that serves it, the given one first; `None` if no version does.
    pub(super) async fn find_in_any_version(
        &self,
        api: &ApiClient,
        known: &ApiResource,
    ) -> Result<Option<Arc<ApiResource>>, ClusterError> {
        if let Some(resource) = self.find(api, &known.group, &known.version, &known.kind).await? {
            return Ok(Some(resource));
        }
        let versions = self.0.lock().await.groups.get(&known.group).cloned().unwrap_or_default();
        for (version, served) in versions {
            let resources = self.list_types(api, &known.group, &version, served).await?;
            if let Some(resource) = resources.into_iter().find(|resource| resource.kind == known.kind) {
                return Ok(Some(resource));
            }
        }
        Ok(None)
    }

    /// Returns every resource type that can be listed, in every version. Fails only if the groups cannot be listed.
    pub(super) async fn list_all(&self, api: &ApiClient) -> Result<ListedTypes, ClusterError> {
        for root in 0..ROOTS.len() {
            self.refresh(api, root).await?;
        }
        let groups = self.0.lock().await.groups.clone();
        let versions = groups.iter().flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)));
        let list = async |(group, (version, served)): (&String, &(String, ServedTypes))| {
            self.list_types(api, group, version, served.clone()).await
        };
        let mut types = ListedTypes::default();
        for listed in run_concurrently(versions.collect(), list).await {
            match listed {
                Ok(resources) => types.resources.extend(resources),
                Err(error) => types.errors.push(error),
            }
        }
        Ok(types)
    }

    /// Makes the next search in a group read it again, because a CRD in it changed. Until then it stays in lists of all types.
    pub(super) async fn forget_group(&self, group: &str) {
        let mut cache = self.0.lock().await;
        cache.stale.insert(group.to_owned());
        // Without ETags the server sends the documents again even if they are unchanged.
        cache.etags = Default::default();
    }

    /// Reads one of the two documents, unless it is unchanged.
    async fn refresh(&self, api: &ApiClient, root: usize) -> Result<(), ClusterError> {
        let operation = Operation::Other("list the kinds that are served".to_owned());
        let mut request = ApiRequest::get(operation, ROOTS[root].to_owned()).accepting(AGGREGATED);
        request.if_none_match = self.0.lock().await.etags[root].clone();
        let response = api.send_for_response(&request).await?;
        if response.status != StatusCode::NOT_MODIFIED {
            let document: Value = response.read(&request)?;
            let mut groups = parse_document(&document)
                .ok_or_else(|| request.malformed(format!("{} is not a list of groups", document["kind"])))?;
            let has_other_groups = groups.keys().any(|group| !is_built_in_group(group));
            let listed =
                if has_other_groups { find_aggregated_apis(api).await? } else { Some(AggregatedApis::default()) };
            let mut cache = self.0.lock().await;
            // If they are not known, the marks stay, and the next request asks for the whole document.
            let etag = response.etag.filter(|_| listed.is_some());
            let aggregated = listed.unwrap_or_else(|| cache.aggregated.clone());
            aggregated.mark_all(&mut groups);
            cache.replace_document(root, etag, groups);
            if root != 0 {
                cache.aggregated = aggregated;
            }
        }
        Ok(())
    }

    /// Returns the resource types of a version; reads them from the group itself if the document does not list them.
    async fn list_types(
        &self,
        api: &ApiClient,
        group: &str,
        version: &str,
        served: ServedTypes,
    ) -> Result<Vec<Arc<ApiResource>>, ClusterError> {
        if let ServedTypes::Listed(resources) = served {
            return Ok(resources);
        }
        let operation = Operation::Other(format!("list the kinds of {}", api_version(group, version)));
        let request = ApiRequest::get(operation, group_version_path(group, version));
        // The group was just listed with this version: a 404 proves nothing.
        let list: Value = api.send(&request).await?;
        let mut resources = parse_resource_list(group, version, &list)
            .ok_or_else(|| request.malformed(format!("{} is not a list of kinds", list["kind"])))?;
        let mut cache = self.0.lock().await;
        cache.aggregated.mark(group, version, &mut resources);
        cache.set_types(group, version, &resources);
        Ok(resources)
    }
}

/// Returns true if an aggregated API server is registered for a group now.
pub(super) async fn is_aggregated_group(api: &ApiClient, group: &str) -> Result<bool, ClusterError> {
    match list_aggregated_apis(api).await {
        Ok(aggregated) => Ok(aggregated.has_group(group)),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) if error.is_forbidden() => Err(error
            .with_hint("no version of the kind is served, and APIServices must be listed to know whether it is gone")),
        Err(error) => Err(error),
    }
}

/// Lists the APIServices of aggregated API servers; `None` if the agent may not, or a proxy does not know them.
async fn find_aggregated_apis(api: &ApiClient) -> Result<Option<AggregatedApis>, ClusterError> {
    match list_aggregated_apis(api).await {
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(None),
        listed => listed.map(Some),
    }
}

/// Lists the APIServices of aggregated API servers. One without a Service is served by the API server itself.
async fn list_aggregated_apis(api: &ApiClient) -> Result<AggregatedApis, ClusterError> {
    let operation = Operation::Other("list the APIServices of aggregated APIs".to_owned());
    let request = ApiRequest::get(operation, AGGREGATED_APIS.to_owned());
    let list: Value = api.send(&request).await?;
    let items = list["items"].as_array().ok_or_else(|| request.malformed("it has no items"))?;
    let with_service = items.iter().filter(|item| item["spec"]["service"].is_object());
    let names = with_service.filter_map(|item| item["metadata"]["name"].as_str());
    Ok(AggregatedApis(names.map(str::to_owned).collect()))
}

/// Parses a discovery document, aggregated or not; `None` if it is neither.
fn parse_document(document: &Value) -> Option<BTreeMap<String, Versions>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let groups = match document["kind"].as_str()? {
        "APIGroupDiscoveryList" => list(&document["items"])
            .iter()
            .map(|group| {
                let name = text(&group["metadata"]["name"]);
                let versions =
                    list(&group["versions"]).iter().map(|version| parse_aggregated_version(&name, version)).collect();
                (name, versions)
            })
            .collect(),
        "APIVersions" => {
            let versions =
                list(&document["versions"]).iter().map(|version| (text(version), ServedTypes::Unlisted)).collect();
            BTreeMap::from([(String::new(), versions)])
        }
        "APIGroupList" => list(&document["groups"])
            .iter()
            .map(|group| {
                let versions = list(&group["versions"]);
                (
                    text(&group["name"]),
                    versions.iter().map(|one| (text(&one["version"]), ServedTypes::Unlisted)).collect(),
                )
            })
            .collect(),
        _ => return None,
    };
    Some(groups)
}

fn parse_aggregated_version(group: &str, version: &Value) -> (String, ServedTypes) {
    let name = version["version"].as_str().unwrap_or_default().to_owned();
    // A stale entry means that the server of the group did not respond.
    if version["freshness"] == "Stale" {
        return (name, ServedTypes::Unlisted);
    }
    let resources = version["resources"].as_array().into_iter().flatten();
    let listable = resources
        .filter(|resource| resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list")))
        .filter_map(|resource| {
            Some(Arc::new(ApiResource {
                group: group.to_owned(),
                version: name.clone(),
                kind: resource["responseKind"]["kind"].as_str()?.to_owned(),
                plural: resource["resource"].as_str()?.to_owned(),
                namespaced: resource["scope"] == "Namespaced",
                is_aggregated: false,
            }))
        });
    let served = ServedTypes::Listed(listable.collect());
    (name, served)
}

/// Parses an APIResourceList, without subresources and types that cannot be listed; `None` if it is none.
fn parse_resource_list(group: &str, version: &str, list: &Value) -> Option<Vec<Arc<ApiResource>>> {
    let resources = list["resources"].as_array().filter(|_| list["kind"] == "APIResourceList")?;
    let listable = resources
        .iter()
        .filter(|resource| resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list")))
        .filter_map(|resource| {
            let plural = resource["name"].as_str().filter(|name| !name.contains('/'))?;
            Some(Arc::new(ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: resource["kind"].as_str()?.to_owned(),
                plural: plural.to_owned(),
                namespaced: resource["namespaced"].as_bool()?,
                is_aggregated: false,
            }))
        })
        .collect();
    Some(listable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn served(document: &Value, group: &str) -> Versions {
        parse_document(document).unwrap().remove(group).unwrap()
    }

    #[test]
    fn a_group_whose_server_does_not_respond_is_not_taken_for_absent() {
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
        let ServedTypes::Listed(kinds) = served(&document, "apps").remove(0).1 else {
            panic!("the types of apps are listed")
        };
        assert_eq!(kinds.iter().map(|kind| kind.plural.as_str()).collect::<Vec<_>>(), ["deployments"]);
        assert_eq!(served(&document, "metrics.example"), [("v1beta1".to_owned(), ServedTypes::Unlisted)]);
        assert_eq!(parse_document(&document).unwrap().get("gone.example"), None);
    }

    #[test]
    fn types_of_an_aggregated_api_are_marked() {
        let version = |version: &str| {
            let kind = json!({"resource": "widgets", "responseKind": {"kind": "Widget"}, "scope": "Cluster", "verbs": ["list"]});
            json!({"version": version, "freshness": "Current", "resources": [kind]})
        };
        let group = json!({"metadata": {"name": "shop.example"}, "versions": [version("v1"), version("v1beta1")]});
        let mut groups = parse_document(&json!({"kind": "APIGroupDiscoveryList", "items": [group]})).unwrap();
        let aggregated = AggregatedApis(BTreeSet::from(["v1.shop.example".to_owned()]));
        aggregated.mark_all(&mut groups);
        let is_aggregated = |(version, served): &(String, ServedTypes)| {
            let ServedTypes::Listed(resources) = served else { panic!("the types of {version} are listed") };
            resources.iter().all(|resource| resource.is_aggregated)
        };
        assert_eq!(groups["shop.example"].iter().map(is_aggregated).collect::<Vec<_>>(), [true, false]);
        assert!(aggregated.has_group("shop.example") && !aggregated.has_group("example"));
    }

    #[test]
    fn a_server_without_aggregated_discovery_is_asked_for_each_group() {
        let core = json!({"kind": "APIVersions", "versions": ["v1"]});
        assert_eq!(served(&core, ""), [("v1".to_owned(), ServedTypes::Unlisted)]);
        let others = json!({"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [{"version": "v1"}]}]});
        assert_eq!(served(&others, "apps"), [("v1".to_owned(), ServedTypes::Unlisted)]);
    }
}
