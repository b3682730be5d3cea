//! Resolves the bundle of a revision: finds the resource type and the namespace of each object and reads its annotations.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sindri_model::{Bundle, BundleError, Checksum, DeclaredObject, IGNORE_ANNOTATION, IgnoredFields, ObjectKey};
use thiserror::Error;

use super::desired::{DesiredObject, DesiredStack, Goal};
use super::inventory::{RevisionPosition, is_inventory_name};
use super::order::Turn;
use super::stage::Stage;
use crate::cluster::ownership::{PRUNE_ANNOTATION, RevisionOwner, ensure_mapping};
use crate::cluster::{ApiResource, Cluster, ClusterError};
use crate::leader::lease::LEASE_NAME;
use crate::target::copy::is_copy_name;
use crate::target::revision::Revision;

/// Object annotation: `"true"` lets the agent delete the object and create it again when the server rejects a change.
pub const REPLACE_ANNOTATION: &str = "brokkr.io/replace";

/// Object annotation: `once` or `always`. An object that is applied once is not created again when it is gone, unless its
/// declaration changes. The default for Jobs that are deleted some time after they have finished is `once`.
pub const APPLY_ANNOTATION: &str = "sindri.dev/apply";

/// Reason why a bundle cannot be resolved.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ResolveError {
    /// The bundle cannot be parsed.
    #[error("the bundle cannot be read: {0}")]
    Bundle(#[from] BundleError),
    /// Objects of kinds that the cluster does not serve, in wrong namespaces, or with invalid annotations.
    #[error("{}", .0.join("; "))]
    Objects(Vec<String>),
    /// A request failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Resolves the objects of a revision. `ignore` holds JSON pointers to fields that are ignored in every object.
pub async fn resolve_bundle(
    cluster: &Cluster,
    revision: &Revision,
    bundle: Bundle,
    ignore: &str,
) -> Result<DesiredStack, ResolveError> {
    let position = RevisionPosition::from_sequence(revision.sequence_id);
    let (stack, id) = (revision.stack_id, revision.id);
    if revision.is_deletion_marker {
        return Ok(DesiredStack { stack, revision: id, position, goal: Goal::Removed });
    }
    let declared = bundle.into_objects();
    let crds = find_crds(&declared);
    let mut locations = Vec::with_capacity(declared.len());
    // Each kind is looked up once: one that is not served is not in the cache of discovery.
    let mut served: BTreeMap<(&str, &str, &str), Option<Arc<ApiResource>>> = BTreeMap::new();
    for item in &declared {
        let kind = (item.key.group.as_str(), item.version.as_str(), item.key.kind.as_str());
        let resource = match served.entry(kind) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(cluster.find_resource(kind.0, kind.1, kind.2).await?).clone(),
        };
        locations.push(locate(cluster, item, resource, &crds));
    }
    let mut objects = Vec::with_capacity(declared.len());
    let owner = Arc::new(RevisionOwner::new(stack, &revision.yaml_checksum));
    let mut problems = Vec::new();
    let has_turns = declared.iter().any(|item| Turn::is_declared(&item.annotations));
    for (item, location) in declared.into_iter().zip(locations) {
        let document = item.document;
        match location.and_then(|(key, resource)| build_object(item, key, resource, owner.clone(), ignore, has_turns)) {
            Ok(object) => objects.push(Arc::new(object)),
            Err(problem) => problems.push(format!("document {document}: {problem}")),
        }
    }
    problems.extend(find_duplicates(&objects));
    if problems.is_empty() {
        Ok(DesiredStack { stack, revision: id, position, goal: Goal::Present(objects) })
    } else {
        Err(ResolveError::Objects(problems))
    }
}

fn build_object(
    item: DeclaredObject,
    key: Arc<ObjectKey>,
    resource: Arc<ApiResource>,
    owner: Arc<RevisionOwner>,
    ignore: &str,
    has_turns: bool,
) -> Result<DesiredObject, String> {
    let DeclaredObject { document, annotations, mut manifest, .. } = item;
    if key.namespace.is_none()
        && let Some(metadata) = manifest["metadata"].as_object_mut()
    {
        metadata.remove("namespace");
    }
    let annotation = |name| annotations.get(name).map_or("", String::as_str);
    // Of the declaration alone: the ignored fields of the stack, which are added below, may change without it.
    let is_once = is_applied_once(&key, &manifest, annotation(APPLY_ANNOTATION))?;
    let once = is_once.then(|| Checksum::compute(&manifest.to_string()));
    let prune = annotation(PRUNE_ANNOTATION);
    if !["", "disabled", "enabled"].contains(&prune) {
        return Err(format!("{key}: {PRUNE_ANNOTATION}: {prune:?} is neither disabled nor enabled"));
    }
    let replace = annotation(REPLACE_ANNOTATION) == "true";
    let own = annotation(IGNORE_ANNOTATION);
    let all = [own, ignore].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    let ignored = IgnoredFields::parse(&all).map_err(|error| format!("{key}: {error}"))?;
    if !ignored.is_empty() {
        // Live values of ignored labels are copied only into existing labels; the ownership label is added later.
        ensure_mapping(&mut manifest["metadata"], "labels");
        ensure_mapping(&mut manifest["metadata"], "annotations")[IGNORE_ANNOTATION] = json!(all);
    }
    if key.group.is_empty() && key.kind == "Secret" {
        encode_secret(&mut manifest);
    }
    let turn = if has_turns { Turn::from_annotations(&key, &annotations) } else { Ok(Turn::default()) };
    let turn = turn.map_err(|error| format!("{key}: {error}"))?;
    Ok(DesiredObject { document, key, resource, manifest, owner, ignored, replace, turn, once })
}

fn is_applied_once(key: &ObjectKey, manifest: &Value, annotation: &str) -> Result<bool, String> {
    match annotation {
        "once" => Ok(true),
        "always" => Ok(false),
        "" => Ok(key.group == "batch" && key.kind == "Job" && manifest["spec"]["ttlSecondsAfterFinished"].is_number()),
        other => Err(format!("{key}: {APPLY_ANNOTATION}: {other:?} is neither once nor always")),
    }
}

/// Converts a Secret's `stringData` to `data`, as the server does. The server never returns `stringData`, so that each
/// apply of it would count as a change.
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
        // A value that is not a string is left for the server to reject.
        let text = value.as_str().map(|text| BASE64.encode(text));
        manifest["data"][name] = text.map_or(value, Value::String);
    }
}

/// Returns the complete key and the resource type of an object, whose kind is served as this type, or a problem of the bundle.
fn locate(
    cluster: &Cluster,
    item: &DeclaredObject,
    served: Option<Arc<ApiResource>>,
    crds: &[&Value],
) -> Result<(Arc<ObjectKey>, Arc<ApiResource>), String> {
    // A CRD in the same bundle tells what the cluster will serve once it is applied.
    let Some(resource) = served.or_else(|| find_in_crds(crds, item).map(Arc::new)) else {
        let api_version = item.manifest["apiVersion"].as_str().unwrap_or_default();
        return Err(format!("{}: the cluster does not serve this kind in {api_version}", item.key));
    };
    let mut key = item.key.clone();
    if resource.namespaced && key.namespace.is_none() {
        Arc::make_mut(&mut key).namespace = Some(cluster.default_namespace().to_owned());
    } else if !resource.namespaced && key.namespace.is_some() {
        // Many charts set it for every object; the API server rejects it.
        tracing::warn!("{key}: this kind is cluster-scoped, and its metadata.namespace is ignored");
        Arc::make_mut(&mut key).namespace = None;
    }
    if let Some(reserved) = find_reserved_namespace(cluster, &key) {
        return Err(format!("{key}: namespace {reserved} is closed to stacks"));
    }
    if let Some(scope) = cluster.namespace_scope().filter(|scope| key.namespace.as_deref() != Some(scope)) {
        return Err(format!("{key}: this agent may only touch objects of namespace {scope}"));
    }
    Ok((key, resource))
}

/// Returns the namespace of an object, or the namespace that it is, if no stack may declare it. In its own namespace, which
/// may also be that of stacks, the objects of the agent are closed.
fn find_reserved_namespace<'a>(cluster: &'a Cluster, key: &ObjectKey) -> Option<&'a str> {
    let namespace = match &key.namespace {
        Some(namespace) => namespace,
        None if Stage::from_key(key) == Stage::Namespaces => &key.name,
        None => return None,
    };
    let is_of_agent = *namespace == cluster.agent_namespace()
        && match (key.group.as_str(), key.kind.as_str()) {
            ("", "ConfigMap") => is_inventory_name(&key.name),
            ("", "Secret") => is_copy_name(&key.name),
            ("coordination.k8s.io", "Lease") => key.name == LEASE_NAME,
            _ => false,
        };
    let own = is_of_agent.then(|| cluster.agent_namespace());
    own.or_else(|| cluster.reserved_namespaces().find(|reserved| reserved == namespace))
}

/// Returns the CustomResourceDefinitions of a bundle.
fn find_crds(bundle: &[DeclaredObject]) -> Vec<&Value> {
    let is_crd = |object: &&DeclaredObject| object.key.kind == "CustomResourceDefinition";
    bundle.iter().filter(is_crd).map(|crd| &crd.manifest).collect()
}

fn find_in_crds(crds: &[&Value], item: &DeclaredObject) -> Option<ApiResource> {
    crds.iter()
        .filter_map(|crd| ApiResource::from_crd(crd, &item.version))
        .find(|resource| resource.group == item.key.group && resource.kind == item.key.kind)
}

/// Finds objects that are declared twice, once with and once without their namespace; other duplicates do not parse.
fn find_duplicates(objects: &[Arc<DesiredObject>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    objects
        .iter()
        .filter(|object| !seen.insert(&object.key))
        .map(|object| format!("document {}: {} is declared twice", object.document, object.key))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ownership::add_ownership;

    fn build(text: &str, ignore: &str) -> DesiredObject {
        let item = Bundle::parse(text).unwrap().into_objects().remove(0);
        let (kind, plural) = ("ConfigMap".to_owned(), "configmaps".to_owned());
        let (group, version) = (String::new(), "v1".to_owned());
        let resource = ApiResource { group, version, kind, plural, namespaced: true, is_aggregated: false };
        let owner = RevisionOwner::new(
            "10000000-0000-4000-8000-000000000000".parse().unwrap(),
            &sindri_model::Checksum::compute(""),
        );
        let key = item.key.clone();
        build_object(item, key, Arc::new(resource), Arc::new(owner), ignore, false).unwrap()
    }

    /// Returns the object as a server without admission webhooks stores it.
    fn stored(object: &DesiredObject) -> Value {
        add_ownership(&object.manifest, &object.owner, &object.key)
    }

    #[test]
    fn an_object_that_is_applied_once_is_known_by_its_declaration_alone() {
        let job = |more: &str| {
            format!("{{apiVersion: batch/v1, kind: Job, metadata: {{name: a, namespace: b}}, spec: {{{more}}}}}")
        };
        let (with_ttl, without) = (job("ttlSecondsAfterFinished: 5"), job("suspend: true"));
        assert!(build(&with_ttl, "").once.is_some() && build(&without, "").once.is_none());
        assert_eq!(build(&with_ttl, "/metadata/labels/x").once, build(&with_ttl, "").once);
        assert_ne!(build(&job("ttlSecondsAfterFinished: 6"), "").once, build(&with_ttl, "").once);
    }

    #[test]
    fn a_declared_ownership_annotation_is_replaced_and_does_not_count_as_rewritten() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {brokkr.io/checksum: another, note: kept}}}";
        let object = build(text, "");
        let live = stored(&object);
        assert_eq!(live["metadata"]["annotations"]["note"], "kept");
        assert_ne!(live["metadata"]["annotations"]["brokkr.io/checksum"], "another");
        assert_eq!(object.to_patch(None).find_rewritten_field(&live), None);
    }

    #[test]
    fn a_rewritten_ownership_label_is_found_and_a_missing_one_is_not() {
        let object = build("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "");
        let mut live = stored(&object);
        let rewritten = |live: &Value| object.to_patch(None).find_rewritten_field(live);
        assert_eq!(rewritten(&live), None);
        live["metadata"]["labels"] = json!({"brokkr.io/stack": "another"});
        assert_eq!(rewritten(&live).as_deref(), Some("metadata.labels.brokkr.io/stack"));
        live["metadata"]["annotations"]["brokkr.io/object"] = json!("another");
        assert_eq!(rewritten(&live).as_deref(), Some("metadata.annotations.brokkr.io/object"));
        assert_eq!(rewritten(&json!({"metadata": {}})), None);
    }

    #[test]
    fn an_ignored_label_is_kept_by_an_object_that_declares_no_labels() {
        let object = build("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "/metadata/labels/theirs");
        let mut manifest = object.manifest.clone();
        object.ignored.copy_live_values(&mut manifest, &json!({"metadata": {"labels": {"theirs": "1", "other": "2"}}}));
        assert_eq!(manifest["metadata"]["labels"], json!({"theirs": "1"}));
    }

    #[test]
    fn string_data_is_encoded_only_in_core_secrets() {
        let text =
            |kind: &str| format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: a}}, stringData: {{a: b}}}}");
        assert_eq!(build(&text("Secret"), "").manifest["data"], json!({"a": "Yg=="}));
        assert_eq!(build(&text("ConfigMap"), "").manifest["stringData"], json!({"a": "b"}));
        let group = text("Secret").replace("v1", "example.com/v1");
        assert_eq!(build(&group, "").manifest["stringData"], json!({"a": "b"}));
    }

    #[test]
    fn a_key_that_serde_json_uses_internally_is_an_ordinary_key() {
        let key = "$serde_json::private::RawValue";
        let text =
            format!("{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, stringData: {{\"{key}\": x, b: c}}}}");
        let object = build(&text, "/data/b");
        assert_eq!(object.manifest["data"], json!({key: "eA==", "b": "Yw=="}));
        assert_eq!(
            object.to_patch(None).find_rewritten_field(&json!({"data": {key: "other"}})),
            Some(format!("data.{key}"))
        );
    }

    #[test]
    fn string_data_is_encoded_and_overrides_data() {
        let mut manifest = json!({"data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}});
        encode_secret(&mut manifest);
        assert_eq!(manifest, json!({"data": {"a": "bmV3", "b": "Yg=="}}));
    }
}
