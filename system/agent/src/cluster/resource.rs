//! Coordinates of a resource type of the Kubernetes API, and the URL paths that follow from them.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sindri_client::percent_encode;
use sindri_model::ObjectKey;

/// One resource type in one version, as discovery lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ApiResource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// Kind, as manifests name it.
    pub kind: String,
    /// Plural name, as URL paths name it.
    pub plural: String,
    /// True if its objects live in namespaces.
    pub namespaced: bool,
    /// True if an aggregated API server serves it, which has a storage of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aggregated: bool,
}

impl ApiResource {
    /// Returns the resource of a namespaced built-in type.
    pub fn from_namespaced_type<K: k8s_openapi::Resource<Scope = NamespaceResourceScope>>() -> Self {
        Self::from_type::<K>(true)
    }

    /// Returns the resource of a cluster-scoped built-in type.
    pub fn from_cluster_type<K: k8s_openapi::Resource<Scope = ClusterResourceScope>>() -> Self {
        Self::from_type::<K>(false)
    }

    fn from_type<K: k8s_openapi::Resource>(namespaced: bool) -> Self {
        Self {
            group: K::GROUP.to_owned(),
            version: K::VERSION.to_owned(),
            kind: K::KIND.to_owned(),
            plural: K::URL_PATH_SEGMENT.to_owned(),
            namespaced,
            is_aggregated: false,
        }
    }

    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Returns the resource that a CustomResourceDefinition declares in one of its versions.
    pub fn from_crd(crd: &Value, version: &str) -> Option<Self> {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let has_version = spec["versions"].as_array()?.iter().any(|entry| entry["name"] == version);
        has_version.then_some(Self {
            group: text(&spec["group"])?,
            version: version.to_owned(),
            kind: text(&spec["names"]["kind"])?,
            plural: text(&spec["names"]["plural"])?,
            namespaced: spec["scope"] == "Namespaced",
            is_aggregated: false,
        })
    }

    /// Returns the key of an object of this resource type.
    pub fn object_key(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// Returns the path of all objects, or of those in one namespace.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = group_version_path(&self.group, &self.version);
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{}/{}", percent_encode(namespace), self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// Returns the path of one object.
    pub fn object_path(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.path(key.namespace.as_deref()), percent_encode(&key.name))
    }
}

/// Returns `group/version`, or the version alone for the core group.
pub(super) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns the path of a version of an API group.
pub(super) fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// Returns true for the API groups of Kubernetes itself. CRDs may also use names that end with `.k8s.io`, such as
/// `autoscaling.k8s.io`.
pub fn is_built_in_group(group: &str) -> bool {
    const GROUPS: [&str; 24] = [
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "extensions",
        "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    ];
    GROUPS.contains(&group)
}
