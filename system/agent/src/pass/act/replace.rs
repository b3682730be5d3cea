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
    if cluster.is_impersonating() && DeleteOrder::from_impersonated_key(&object.key) == DeleteOrder::Permissions {
        // The dry run below has the permissions that the delete may take away.
        return Err(
            rejection.with_hint("it is not replaced: the ServiceAccount of the stack could lose its permissions")
        );
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
        // The old object would be deleted and could not be created again.
        Err(_) => Err(rejection.with_hint("it is not replaced: a new object would not be valid either")),
    }
}

/// Deletes the object that is to be replaced, and waits until it is gone. Before each attempt it must still belong to the stack,
/// no other stack may declare it, and the instruction must be current.
pub async fn delete_for_replacement(
    recheck: Recheck<'_>,
    inventory: &Inventory,
    write: &Write,
    uid: &str,
) -> Result<(), ActError> {
    let key = &write.object.key;
    let Some(entry) = inventory.get(key) else { return Err(ActError::HandedOver { key: key.clone() }) };
    let mut backoff = Backoff::new(GONE_WAIT_MAX);
    // A delete of an object that changed after it was read is repeated.
    while let Some(live) = recheck.read(entry, uid).await.map_err(to_act_error)? {
        if !live.is_terminating {
            recheck.cluster.delete(|| recheck.read_current(entry, uid)).await?.map_err(to_act_error)?;
            tracing::info!("deleted {key}, which is replaced");
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
