//! The first step: what is wanted, what is ours, what is there.
//!
//! Every failure to see is an error. Nothing is ever concluded from an answer that did not come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use sindri_model::wire::DeploymentObject;
use sindri_model::{Bundle, BundleError, DeclaredObject, ObjectKey, RevisionId, StackId};
use thiserror::Error;

use crate::cluster::concurrency::at_once;
use crate::cluster::ignore::{IGNORE_ANNOTATION, Ignored};
use crate::cluster::ownership::{Owner, Sent};
use crate::cluster::reflector::Watches;
use crate::cluster::{Cluster, ClusterError, LiveObject, Patch, Resource};
use crate::pass::inventory::{Entry, Inventory, Position};
use crate::pass::plan::Write;

/// On an object: `"true"` lets it be deleted and made anew when the server refuses to change it.
pub const REPLACE_ANNOTATION: &str = "brokkr.io/replace";
/// Where objects go that do not say where.
pub const DEFAULT_NAMESPACE: &str = "default";

/// One object of a revision, and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Its place in the bundle.
    pub document: usize,
    /// Which object; the namespace is filled in.
    pub key: Arc<ObjectKey>,
    /// Where it goes.
    pub resource: Arc<Resource>,
    /// What is applied; its marks, its name and its namespace are written in when it is sent.
    pub manifest: Value,
    /// What the marks say.
    pub owner: Arc<Owner>,
    /// What of it is left to others once it is there.
    pub ignored: Ignored,
    /// Whether it may be deleted and made anew when it cannot be changed.
    pub replace: bool,
}

impl DesiredObject {
    /// As it is sent.
    pub fn patch(&self) -> Patch<'_> {
        let sent = Sent { manifest: &self.manifest, owner: &self.owner, key: &self.key };
        Patch::new(&self.resource, &self.key, &sent)
    }
}

/// What the broker wants of one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The stack.
    pub stack: StackId,
    /// The revision.
    pub revision: RevisionId,
    /// Its place in the order of revisions.
    pub position: Position,
    /// Its objects; none for a removal.
    pub goal: Goal,
}

/// To be there, or to be gone.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// These objects, and nothing else of the stack.
    Present(Vec<Arc<DesiredObject>>),
    /// Nothing of the stack.
    Removed,
}

/// The live objects that the plan asks about, by key. A key that was looked up and is missing here is absent.
pub type LiveSet = BTreeMap<Arc<ObjectKey>, LiveObject>;

/// Why nothing can be said about a stack.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ObserveError {
    /// The bundle is broken.
    #[error("the bundle cannot be read: {0}")]
    Bundle(#[from] BundleError),
    /// Objects of kinds that the cluster does not serve, or without a place.
    #[error("{}", .0.join("; "))]
    Unplaced(Vec<String>),
    /// The cluster did not answer.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Finds the kinds and places of a revision's objects. Every object of it leaves to others what `ignore` says.
pub async fn desired(
    cluster: &Cluster,
    object: &DeploymentObject,
    bundle: Bundle,
    position: Position,
    ignore: &str,
) -> Result<Desired, ObserveError> {
    let (stack, revision) = (object.stack_id, object.id);
    if object.is_deletion_marker {
        return Ok(Desired { stack, revision, position, goal: Goal::Removed });
    }
    let declared = bundle.into_objects();
    let definitions = definitions(&declared);
    let mut places = Vec::with_capacity(declared.len());
    for item in &declared {
        places.push(place(cluster, item, &definitions).await?);
    }
    let mut placed = Vec::with_capacity(declared.len());
    let owner = Arc::new(Owner::new(stack, &object.yaml_checksum));
    let mut faults = Vec::new();
    for (item, place) in declared.into_iter().zip(places) {
        let document = item.document;
        match place.and_then(|(key, resource)| make(item, key, resource, owner.clone(), ignore)) {
            Ok(made) => placed.push(Arc::new(made)),
            Err(fault) => faults.push(format!("document {document}: {fault}")),
        }
    }
    faults.extend(doubles(&placed));
    if faults.is_empty() {
        Ok(Desired { stack, revision, position, goal: Goal::Present(placed) })
    } else {
        Err(ObserveError::Unplaced(faults))
    }
}

/// An object as it is applied, and what it leaves to others.
fn make(
    item: DeclaredObject,
    key: Arc<ObjectKey>,
    resource: Arc<Resource>,
    owner: Arc<Owner>,
    ignore: &str,
) -> Result<DesiredObject, String> {
    let DeclaredObject { document, annotations, mut manifest, .. } = item;
    let annotation = |name| annotations.get(name).map_or("", String::as_str);
    let replace = annotation(REPLACE_ANNOTATION) == "true";
    let own = annotation(IGNORE_ANNOTATION);
    let all = [own, ignore].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    let ignored = Ignored::parse(&all).map_err(|error| format!("{key}: {error}"))?;
    if !ignored.is_empty() {
        // A label of others is kept where there are labels: marks, which every object gets, come later.
        entry(&mut manifest["metadata"], "labels");
        entry(&mut manifest["metadata"], "annotations")[IGNORE_ANNOTATION] = json!(all);
    }
    if key.group.is_empty() && key.kind == "Secret" {
        encode_secret(&mut manifest);
    }
    Ok(DesiredObject { document, key, resource, manifest, owner, ignored, replace })
}

/// The mapping at `field`; a manifest may write an empty one as null.
fn entry<'a>(parent: &'a mut Value, field: &str) -> &'a mut Value {
    let child = &mut parent[field];
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    child
}

/// Turns a Secret's `stringData` into `data`, as the server would. The server never gives `stringData` back, so
/// that each apply of it looks like a change and is written.
fn encode_secret(manifest: &mut Value) {
    if !manifest["stringData"].is_object() {
        return;
    }
    let Some(Value::Object(plain)) = manifest.as_object_mut().and_then(|fields| fields.remove("stringData")) else {
        return;
    };
    if !manifest["data"].is_object() {
        manifest["data"] = json!({});
    }
    for (name, value) in plain {
        // What is not text is left for the server to refuse.
        let text = value.as_str().map(|text| BASE64.encode(text));
        manifest["data"][name] = text.map_or(value, Value::String);
    }
}

/// Where an object goes: the outer error is a cluster that did not answer, the inner one is the bundle's.
async fn place(
    cluster: &Cluster,
    item: &DeclaredObject,
    definitions: &[&Value],
) -> Result<Result<(Arc<ObjectKey>, Arc<Resource>), String>, ClusterError> {
    let served = cluster.resource(&item.key.group, &item.version, &item.key.kind).await?;
    // A definition in the same bundle says what the cluster will serve once it is applied.
    let Some(resource) = served.or_else(|| defined_in(definitions, item).map(Arc::new)) else {
        let api_version = item.manifest["apiVersion"].as_str().unwrap_or_default();
        return Ok(Err(format!("{}: the cluster does not serve this kind in {api_version}", item.key)));
    };
    let mut key = item.key.clone();
    if resource.namespaced && key.namespace.is_none() {
        Arc::make_mut(&mut key).namespace = Some(cluster.scope().unwrap_or(DEFAULT_NAMESPACE).to_owned());
    } else if !resource.namespaced && key.namespace.is_some() {
        return Ok(Err(format!("{key}: this kind has no namespaces; leave metadata.namespace out")));
    }
    if let Some(scope) = cluster.scope().filter(|scope| key.namespace.as_deref() != Some(scope)) {
        return Ok(Err(format!("{key}: this agent may touch objects of namespace {scope} only")));
    }
    Ok(Ok((key, resource)))
}

/// Returns the CustomResourceDefinitions of a bundle.
fn definitions(bundle: &[DeclaredObject]) -> Vec<&Value> {
    let is_definition = |object: &&DeclaredObject| object.key.kind == "CustomResourceDefinition";
    bundle.iter().filter(is_definition).map(|definition| &definition.manifest).collect()
}

fn defined_in(definitions: &[&Value], item: &DeclaredObject) -> Option<Resource> {
    definitions
        .iter()
        .filter_map(|definition| Resource::defined_by(definition, &item.version))
        .find(|resource| resource.group == item.key.group && resource.kind == item.key.kind)
}

/// The same object once with and once without its namespace is found only now.
fn doubles(placed: &[Arc<DesiredObject>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    placed
        .iter()
        .filter(|object| !seen.insert(&object.key))
        .map(|object| format!("document {}: {} is declared twice", object.document, object.key))
        .collect()
}

/// Looks at the objects of a stack: those that carry a label of ours, and those that only the inventory knows. What is
/// declared and seen by neither is new, or not ours yet.
pub async fn live(
    cluster: &Cluster,
    watches: &Watches,
    desired: &Desired,
    inventory: &Inventory,
) -> Result<LiveSet, ClusterError> {
    let mut wanted: BTreeMap<&ObjectKey, &Arc<Resource>> = BTreeMap::new();
    wanted.extend(inventory.entries().map(|entry| (&*entry.key, &entry.resource)));
    if let Goal::Present(objects) = &desired.goal {
        wanted.extend(objects.iter().map(|object| (&*object.key, &object.resource)));
    }
    let mut live = LiveSet::new();
    let mut unlisted: BTreeSet<&Arc<Resource>> = BTreeSet::new();
    // One by one: collecting would sort thousands of which few differ.
    let mut kinds: BTreeSet<&Arc<Resource>> = BTreeSet::new();
    kinds.extend(wanted.values());
    for known in kinds {
        // A kind that no version serves any more has no objects.
        let Some(resource) = cluster.resource_in_any_version(known).await? else { continue };
        let is_wanted = |object: &LiveObject| wanted.contains_key(&*object.key);
        let labelled = match watches.select(&resource, is_wanted) {
            Some(labelled) => labelled,
            None => match cluster.marked(&resource).await {
                Ok((listed, _)) => listed.into_iter().filter(is_wanted).collect(),
                // Whoever may not list may still read: each object is asked for by its name below.
                Err(error) if error.is_forbidden() => {
                    unlisted.insert(known);
                    Vec::new()
                }
                Err(error) if error.is_not_found() => Vec::new(),
                Err(error) => return Err(error),
            },
        };
        live.extend(labelled.into_iter().map(|object| (object.key.clone(), object)));
    }
    let is_unseen = |key: &ObjectKey, known: &Arc<Resource>| {
        !live.contains_key(key) && (unlisted.contains(known) || inventory.get(key).is_some())
    };
    let unseen = wanted.into_iter().filter(|(key, known)| is_unseen(key, known));
    let unseen: Vec<(&ObjectKey, &Resource)> = unseen.map(|(key, known)| (key, &**known)).collect();
    let read = |(key, known)| async move {
        match cluster.resource_in_any_version(known).await? {
            Some(resource) => cluster.metadata(&resource, key).await,
            None => Ok(None),
        }
    };
    let read: Vec<Result<Option<LiveObject>, ClusterError>> = at_once(unseen, read).await;
    for object in read {
        live.extend(object?.map(|object| (object.key.clone(), object)));
    }
    Ok(live)
}

/// Gives the fields that are left to others the values that they have now, so that applying does not change them.
pub async fn keep_ignored(cluster: &Cluster, writes: &mut [Write]) -> Result<(), ClusterError> {
    for write in writes.iter_mut().filter(|write| !write.object.ignored.is_empty()) {
        if let Some(live) = cluster.read(&write.object.resource, &write.object.key).await? {
            let DesiredObject { ignored, manifest, .. } = Arc::make_mut(&mut write.object);
            ignored.keep_live(manifest, &live);
        }
    }
    Ok(())
}

/// Finds what is provably of a stack and in no inventory: the inventory may have been deleted by someone, and a
/// removal must not be confirmed from that absence.
pub async fn sweep(cluster: &Cluster, stack: StackId) -> Result<Vec<Entry>, ClusterError> {
    let mut found = Vec::new();
    for resource in cluster.listable_resources().await? {
        for object in cluster.labelled(&resource, stack).await? {
            if object.marks.prove(stack, &object.key) {
                found.push(Entry { key: object.key, resource: object.resource, uid: Some(object.uid) });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str, ignore: &str) -> DesiredObject {
        let item = Bundle::parse(text).unwrap().into_objects().remove(0);
        let (kind, plural) = ("ConfigMap".to_owned(), "configmaps".to_owned());
        let resource = Resource { group: String::new(), version: "v1".to_owned(), kind, plural, namespaced: true };
        let owner =
            Owner::new("10000000-0000-4000-8000-000000000000".parse().unwrap(), &sindri_model::Checksum::of(""));
        let key = item.key.clone();
        make(item, key, Arc::new(resource), Arc::new(owner), ignore).unwrap()
    }

    /// As a server has it that changes nothing.
    fn sent(object: &DesiredObject) -> Value {
        let DesiredObject { manifest, owner, key, .. } = object;
        serde_json::to_value(Sent { manifest, owner, key }).unwrap()
    }

    #[test]
    fn a_mark_that_is_declared_is_not_what_the_object_is_compared_with() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {brokkr.io/checksum: another, note: kept}}}";
        let object = made(text, "");
        let live = sent(&object);
        assert_eq!(live["metadata"]["annotations"]["note"], "kept");
        assert_ne!(live["metadata"]["annotations"]["brokkr.io/checksum"], "another");
        assert_eq!(object.patch().rewritten(&live), None);
    }

    #[test]
    fn a_mark_that_somebody_rewrites_is_found_and_one_that_is_missing_is_not() {
        let object = made("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "");
        let mut live = sent(&object);
        let rewritten = |live: &Value| object.patch().rewritten(live);
        assert_eq!(rewritten(&live), None);
        live["metadata"]["labels"] = json!({"brokkr.io/stack": "another"});
        assert_eq!(rewritten(&live).as_deref(), Some("metadata.labels.brokkr.io/stack"));
        live["metadata"]["annotations"]["brokkr.io/object"] = json!("another");
        assert_eq!(rewritten(&live).as_deref(), Some("metadata.annotations.brokkr.io/object"));
        assert_eq!(rewritten(&json!({"metadata": {}})), None);
    }

    #[test]
    fn a_label_of_others_is_kept_by_an_object_that_declares_none() {
        let made = made("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "/metadata/labels/theirs");
        let mut manifest = made.manifest.clone();
        made.ignored.keep_live(&mut manifest, &json!({"metadata": {"labels": {"theirs": "1", "other": "2"}}}));
        assert_eq!(manifest["metadata"]["labels"], json!({"theirs": "1"}));
    }

    #[test]
    fn only_the_clear_text_of_secrets_is_encoded() {
        let text =
            |kind: &str| format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: a}}, stringData: {{a: b}}}}");
        assert_eq!(made(&text("Secret"), "").manifest["data"], json!({"a": "Yg=="}));
        assert_eq!(made(&text("ConfigMap"), "").manifest["stringData"], json!({"a": "b"}));
        let group = text("Secret").replace("v1", "example.com/v1");
        assert_eq!(made(&group, "").manifest["stringData"], json!({"a": "b"}));
    }

    #[test]
    fn a_key_that_means_something_to_a_library_is_a_key_like_others() {
        let key = "$serde_json::private::RawValue";
        let text =
            format!("{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, stringData: {{\"{key}\": x, b: c}}}}");
        let object = made(&text, "/data/b");
        assert_eq!(object.manifest["data"], json!({key: "eA==", "b": "Yw=="}));
        assert_eq!(object.patch().rewritten(&json!({"data": {key: "other"}})), Some(format!("data.{key}")));
    }

    #[test]
    fn the_clear_text_of_a_secret_is_encoded_and_wins_over_data() {
        let mut manifest = json!({"data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}});
        encode_secret(&mut manifest);
        assert_eq!(manifest, json!({"data": {"a": "bmV3", "b": "Yg=="}}));
    }
}
