//! Object keys: conversions between the text of scenarios, the keys of the API server's store and the model's.

use sindri_apiserver::StoredKey;
use sindri_model::ObjectKey;

/// Kinds of the core group, which a key names without a group.
const CORE_KINDS: [&str; 17] = [
    "Binding",
    "ComponentStatus",
    "ConfigMap",
    "Endpoints",
    "Event",
    "LimitRange",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ReplicationController",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
];

/// Parses a key as [`ObjectKey`] prints it: `apps/Deployment shop/web`, `Namespace shop`.
pub fn parse_object_key(text: &str) -> Result<ObjectKey, String> {
    let invalid = || format!("{text:?} is not an object key: write [GROUP/]KIND [NAMESPACE/]NAME");
    let (kind, name) = text.split_once(' ').ok_or_else(invalid)?;
    let (group, kind) = kind.rsplit_once('/').unwrap_or(("", kind));
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, name),
    };
    if kind.is_empty() || name.is_empty() || name.contains([' ', '/']) {
        return Err(invalid());
    }
    // No object would ever match it, so that a check that the object does not exist would always hold.
    if group.is_empty() && !CORE_KINDS.contains(&kind) {
        return Err(format!("{text:?}: {kind} is not a kind of the core group; write GROUP/{kind}"));
    }
    Ok(ObjectKey { group: group.to_owned(), kind: kind.to_owned(), namespace, name: name.to_owned() })
}

/// Converts a key of the API server's store.
pub fn from_stored_key(key: &StoredKey) -> ObjectKey {
    ObjectKey {
        group: key.group.clone(),
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// Kinds without a namespace that bundles declare.
const CLUSTER_SCOPED: [&str; 9] = [
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "StorageClass",
    "PersistentVolume",
    "PriorityClass",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
];

/// Fills in the namespace `default` where a manifest leaves it out, and drops that of a cluster-scoped object, as a cluster
/// does.
pub fn with_default_namespace(key: &ObjectKey) -> ObjectKey {
    let namespace = key.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let is_cluster_scoped = CLUSTER_SCOPED.contains(&key.kind.as_str());
    ObjectKey { namespace: (!is_cluster_scoped).then_some(namespace), ..key.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_parsed_as_it_is_printed() {
        for text in ["apps/Deployment shop/web", "Namespace shop", "ConfigMap default/a"] {
            assert_eq!(parse_object_key(text).map(|key| key.to_string()), Ok(text.to_owned()));
        }
        for invalid in [
            "",
            "Namespace",
            "Namespace ",
            "apps/ web",
            "ConfigMap default/",
            "ConfigMap a b",
            "Deployment shop/web",
            "Servce shop/a",
        ] {
            assert!(parse_object_key(invalid).is_err(), "{invalid}");
        }
    }
}
