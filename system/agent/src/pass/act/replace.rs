//! Replaces an object whose change the server rejects: only if the object's annotation allows it, the live object is proved
//! to belong to the stack, and the server would accept the new object.

use serde_json::Value;
use sindri_model::{ObjectKey, StackId};

use super::backoff::Backoff;
use super::recheck::Recheck;
use super::result::{ActError, DeleteError, GONE_WAIT_MAX};
use crate::cluster::ownership::add_ownership;
use crate::cluster::{ApplyMode, ApplyPatch, Cluster, ClusterError};
use crate::pass::inventory::Inventory;
use crate::pass::plan::{Write, is_owned};
use crate::pass::stage::{DeleteOrder, Stage};

/// Unused name under which the object is validated as a new one.
const CHECK_NAME: &str = "sindri-check-before-replacing";

/// Returns the UID of an object that can be deleted and created again; otherwise the rejection with the reason why not.
pub async fn check_replaceable(
    cluster: &Cluster,
    stack: StackId,
    inventory: &Inventory,
    write: &Write,
    rejection: ClusterError,
) -> Result<String, ClusterError> {
    let object = &write.object;
    if has_content(&object.key) {
        return Err(rejection.with_hint("it is not replaced: its content would be deleted with it"));
    }
    // The dry run below has the permissions that the delete may take away.
    if let Some(user) = cluster.impersonated_user()
        && DeleteOrder::from_impersonated_key(&object.key) == DeleteOrder::Permissions
    {
        let live: Option<Value> = cluster.get(&object.resource, &object.key).await?;
        if live.is_none_or(|live| may_give_permissions(&live, user)) {
            return Err(
                rejection.with_hint("it is not replaced: the ServiceAccount of the stack could lose its permissions")
            );
        }
    }
    let Some(live) = cluster.get_metadata(&object.resource, &object.key).await? else { return Err(rejection) };
    if !inventory.get(&object.key).is_some_and(|entry| is_owned(stack, entry, &live)) {
        return Err(rejection.with_hint("it is not replaced: it does not belong to this stack"));
    }
    let key = ObjectKey { name: CHECK_NAME.to_owned(), ..ObjectKey::clone(&object.key) };
    let mut manifest = add_ownership(&object.manifest, &object.owner, &key);
    if (key.group.as_str(), key.kind.as_str()) == ("", "Service") {
        let live: Option<Value> = cluster.get(&object.resource, &object.key).await?;
        remove_allocated(&mut manifest, &live.unwrap_or_default());
    }
    let patch = ApplyPatch::new(&object.resource, &key, &manifest);
    match cluster.apply_only(&patch, ApplyMode::DryRun).await {
        Ok(()) => Ok(live.uid),
        Err(error) if error.is_inconclusive() => Err(error),
        // The old object would be deleted and could not be created again.
        Err(_) => Err(rejection.with_hint("it is not replaced: a new object would not be valid either")),
    }
}

/// Deletes the object that is to be replaced, and waits until it is gone. Before each attempt it must still belong to the stack,
/// and the instruction must be current. After the first attempt the wait is not cut short.
pub async fn delete_for_replacement(
    recheck: Recheck<'_>,
    inventory: &Inventory,
    write: &Write,
    uid: &str,
) -> Result<(), ActError> {
    let key = &write.object.key;
    let Some(entry) = inventory.get(key) else { return Err(ActError::HandedOver { key: key.clone() }) };
    let with_all_retries = recheck.cluster.with_all_retries();
    let (mut waiting, mut backoff) = (recheck, Backoff::new(GONE_WAIT_MAX));
    // A delete of an object that changed after it was read is repeated.
    while let Some(live) = waiting.read(entry, uid).await.map_err(to_act_error)? {
        if !live.is_terminating {
            let check = || async {
                let live = waiting.read(entry, uid).await?;
                // An attempt whose response was lost may have deleted it: then it is created again.
                if live.is_some() {
                    waiting.check_current(entry)?;
                }
                Ok(live)
            };
            waiting.cluster.delete(key, check).await?.map_err(to_act_error)?;
            tracing::info!("deleted {key}, which is replaced");
            waiting = Recheck { cluster: &with_all_retries, ..recheck };
        }
        if !backoff.pause().await {
            return Err(ActError::NotReplaced { key: key.clone() });
        }
    }
    Ok(())
}

fn to_act_error(error: DeleteError) -> ActError {
    match error {
        DeleteError::Changed(key) => ActError::HandedOver { key },
        DeleteError::Interrupted(_) => ActError::Interrupted,
        DeleteError::Cluster(error) => error.into(),
        other => ActError::Deletes(vec![other]),
    }
}

/// Returns true if this is a role, or a binding that may include the ServiceAccount with this user name.
fn may_give_permissions(live: &Value, user: &str) -> bool {
    let Some(subjects) = live["subjects"].as_array() else { return true };
    subjects.iter().any(|subject| match (subject["kind"].as_str(), subject["name"].as_str()) {
        (Some("ServiceAccount"), Some(name)) => {
            let namespace = subject["namespace"].as_str().unwrap_or_default();
            user == format!("system:serviceaccount:{namespace}:{name}")
        }
        (Some("User"), Some(name)) => user == name,
        // Every ServiceAccount is in groups of the system.
        (Some("Group"), Some(name)) => name.starts_with("system:"),
        _ => true,
    })
}

/// Removes the addresses and ports of a Service that the live one has: they are free when it is deleted.
fn remove_allocated(manifest: &mut Value, live: &Value) {
    let Some(spec) = manifest["spec"].as_object_mut() else { return };
    for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
        if spec.get(field).is_some_and(|value| *value == live["spec"][field]) {
            spec.remove(field);
        }
    }
    let live_ports = live["spec"]["ports"].as_array();
    let is_live = |port: &Value| live_ports.is_some_and(|live| live.iter().any(|live| live["nodePort"] == *port));
    for port in
        spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
    {
        if port.get("nodePort").is_some_and(is_live) {
            port.remove("nodePort");
        }
    }
}

/// Returns true for namespaces, CRDs and volumes, whose content would be deleted with them.
fn has_content(key: &ObjectKey) -> bool {
    Stage::from_key(key).precedes_validation() || Stage::from_key(key) == Stage::Storage
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::may_give_permissions;

    #[test]
    fn a_binding_of_other_subjects_gives_no_permissions() {
        for (subject, expected) in [
            (json!({"kind": "ServiceAccount", "namespace": "shop", "name": "deployer"}), true),
            (json!({"kind": "ServiceAccount", "namespace": "mall", "name": "deployer"}), false),
            (json!({"kind": "ServiceAccount", "namespace": "shop", "name": "reader"}), false),
            (json!({"kind": "User", "name": "system:serviceaccount:shop:deployer"}), true),
            (json!({"kind": "User", "name": "ann"}), false),
            (json!({"kind": "Group", "name": "system:serviceaccounts:shop"}), true),
            (json!({"kind": "Group", "name": "people"}), false),
            (json!({"kind": "Robot", "name": "ann"}), true),
        ] {
            let binding = json!({"subjects": [subject]});
            assert_eq!(may_give_permissions(&binding, "system:serviceaccount:shop:deployer"), expected, "{binding}");
        }
        assert!(may_give_permissions(&json!({"rules": []}), "system:serviceaccount:shop:deployer"), "a role");
    }
}
