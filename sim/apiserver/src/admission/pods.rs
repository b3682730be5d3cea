//! Admission of pods: the service account with its token and secrets, the priority, and default tolerations.

use serde_json::{Value, json};

use super::priority::{apply_runtime_class, keep_priority, set_priority};
use crate::object::fields::{array_at, push, string_at};
use crate::registry::resource::Resource;
use crate::storage::ids::Ids;
use crate::storage::store::Store;

/// Mount path of the service account token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Prefix of the volume with the service account token.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Service account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

/// True if a new pod uses the default service account of its namespace and that does not exist yet.
pub(crate) fn lacks_default_account(store: &Store, resource: &Resource, pod: &Value) -> bool {
    let namespace = string_at(pod, "/metadata/namespace");
    resource.is("", "pods")
        && matches!(string_at(pod, "/spec/serviceAccountName"), "" | DEFAULT_ACCOUNT)
        && store.find("", "serviceaccounts", Some(namespace), DEFAULT_ACCOUNT).is_none()
}

/// Adds a service account with its token, a priority and default tolerations to a pod. The error is the reason to reject it.
pub(crate) fn admit_pod(
    store: &Store,
    ids: &mut Ids,
    requires_account: bool,
    resource: &Resource,
    pod: &mut Value,
) -> Result<(), String> {
    if !resource.is("", "pods") {
        return Ok(());
    }
    let namespace = string_at(pod, "/metadata/namespace").to_owned();
    let suffix = ids.name_suffix();
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return Ok(()) };
    let account = match string_at(spec, "/serviceAccountName") {
        "" => DEFAULT_ACCOUNT.to_owned(),
        account => account.to_owned(),
    };
    if requires_account {
        let Some(found) = store.find("", "serviceaccounts", Some(&namespace), &account) else {
            return Err(format!(
                "error looking up service account {namespace}/{account}: serviceaccount {account:?} not found"
            ));
        };
        spec["serviceAccountName"] = json!(account);
        spec["serviceAccount"] = json!(account);
        take_account_settings(found, spec, &suffix);
    }
    set_priority(store, spec)?;
    tolerate_absent_nodes(spec);
    apply_runtime_class(store, spec)
}

/// Gives a changed pod what every pod has, if the change leaves it out: its priority and the default tolerations.
pub(crate) fn admit_changed_pod(resource: &Resource, live: &Value, pod: &mut Value) {
    if !resource.is("", "pods") {
        return;
    }
    if let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) {
        keep_priority(live, spec);
        tolerate_absent_nodes(spec);
    }
}

/// Mounts the token of its service account in a pod, unless one of both forbids it, and adds the account's secrets for images
/// to a pod that has none.
fn take_account_settings(account: &Value, spec: &mut Value, suffix: &str) {
    let mounts = |object: &Value| object.get("automountServiceAccountToken").and_then(Value::as_bool);
    if mounts(spec).or_else(|| mounts(account)).unwrap_or(true) {
        mount_token(spec, suffix);
    }
    if array_at(spec, "/imagePullSecrets").is_empty() && !array_at(account, "/imagePullSecrets").is_empty() {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
}

/// Adds the tolerations that let a pod stay for five minutes on a node that is not ready or not reachable.
fn tolerate_absent_nodes(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let toleration = json!({"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300});
        let known = array_at(spec, "/tolerations").iter().any(|known| string_at(known, "/key") == key);
        if !known {
            push(spec, "tolerations", toleration);
        }
    }
}

/// Mounts the token in every container that mounts nothing at its path. After a webhook added containers, the volume exists.
fn mount_token(spec: &mut Value, suffix: &str) {
    let volumes = array_at(spec, "/volumes").iter().map(|volume| string_at(volume, "/name"));
    let existing = volumes.filter(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned).next();
    let (is_new, volume) = (existing.is_none(), existing.unwrap_or_else(|| format!("{TOKEN_VOLUME}{suffix}")));
    let mount = json!({"mountPath": TOKEN_PATH, "name": volume, "readOnly": true});
    let mut is_needed = false;
    for containers in ["containers", "initContainers"] {
        let containers = spec.get_mut(containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounted =
                array_at(container, "/volumeMounts").iter().any(|mount| string_at(mount, "/mountPath") == TOKEN_PATH);
            if !mounted {
                push(container, "volumeMounts", mount.clone());
                is_needed = true;
            }
        }
    }
    if !is_new || !is_needed {
        return;
    }
    let namespace = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"});
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [namespace]}},
    ]);
    push(spec, "volumes", json!({"name": volume, "projected": {"defaultMode": 420, "sources": sources}}));
}
