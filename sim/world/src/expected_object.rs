//! Objects of a bundle, read for the oracles alone: not with the parser of the broker and the agent.

use serde::Deserialize;
use serde_json::Value;
use sindri_agent::{APPLY_ANNOTATION, PRUNE_ANNOTATION, REPLACE_ANNOTATION};
use sindri_model::IgnoredFields;
use sindri_model::ObjectKey;

use crate::declared_fields::has_declared_fields;
use crate::object_key::with_default_namespace;
use crate::worlds::PART_PREFIX;

/// An object that a revision declares.
#[derive(Clone, Debug)]
pub struct ExpectedObject {
    /// Its key, with the namespace filled in.
    pub key: ObjectKey,
    /// The manifest as it was submitted.
    pub manifest: Value,
}

impl ExpectedObject {
    fn from_manifest(mut manifest: Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let api_version = text(&manifest["apiVersion"])?;
        let group = api_version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
        let metadata = &manifest["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"])?);
        let key = with_default_namespace(&ObjectKey { group, kind: text(&manifest["kind"])?, namespace, name });
        if let (None, Some(metadata)) = (&key.namespace, manifest["metadata"].as_object_mut()) {
            metadata.remove("namespace");
        }
        Some(Self { key, manifest })
    }

    /// Returns true if a live object has every declared field.
    pub fn is_met_by(&self, live: &Value) -> bool {
        let mut manifest = self.manifest.clone();
        // Fields that the manifest leaves to other field managers may have any value.
        IgnoredFields::from_metadata(&manifest["metadata"]).copy_live_values(&mut manifest, live);
        has_declared_fields(live, &manifest) && !has_dropped_part(live, &manifest)
    }

    /// Returns true if it is applied once, and may be gone later.
    pub fn is_applied_once(&self) -> bool {
        match self.manifest["metadata"]["annotations"][APPLY_ANNOTATION].as_str() {
            Some(value) => value == "once",
            None => self.manifest["kind"] == "Job" && self.manifest["spec"]["ttlSecondsAfterFinished"].is_number(),
        }
    }

    /// Returns true if it is the namespace of an object, or the CRD of its kind.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        is_container_of(&self.manifest, &self.key, key)
    }

    /// Returns true if it is kept when no revision declares it any more.
    pub fn is_kept(&self) -> bool {
        self.manifest["metadata"]["annotations"][PRUNE_ANNOTATION] == "disabled"
    }

    /// Returns true if the agent may delete it and create it again.
    pub fn may_be_replaced(&self) -> bool {
        self.manifest["metadata"]["annotations"][REPLACE_ANNOTATION] == "true"
    }
}

/// Returns true if a live ConfigMap has a key that an earlier revision of a random world declared and this one does not.
fn has_dropped_part(live: &Value, manifest: &Value) -> bool {
    let mut keys = live["data"].as_object().into_iter().flat_map(serde_json::Map::keys);
    keys.any(|key| key.starts_with(PART_PREFIX) && manifest["data"][key].is_null())
}

/// Returns true if an object is the namespace of another, or the CRD of its kind: then it stays as long as that one.
pub fn is_container_of(object: &Value, key: &ObjectKey, inner: &ObjectKey) -> bool {
    let spec = &object["spec"];
    match key.kind.as_str() {
        "Namespace" => inner.namespace.as_deref() == Some(key.name.as_str()),
        "CustomResourceDefinition" => {
            spec["group"] == inner.group.as_str() && spec["names"]["kind"] == inner.kind.as_str()
        }
        _ => false,
    }
}

/// Reads the objects of a bundle; none if it is not valid YAML.
pub fn read_bundle(text: &str) -> Vec<ExpectedObject> {
    let documents: Result<Vec<Value>, _> = serde_yaml::Deserializer::from_str(text).map(Value::deserialize).collect();
    let items = documents.unwrap_or_default().into_iter().flat_map(expand_list);
    items.filter_map(ExpectedObject::from_manifest).collect()
}

fn expand_list(document: Value) -> Vec<Value> {
    match document {
        Value::Object(mut fields) if fields.get("kind").is_some_and(|kind| kind == "List") => {
            match fields.remove("items") {
                Some(Value::Array(items)) => items.into_iter().flat_map(expand_list).collect(),
                _ => Vec::new(),
            }
        }
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_lists_are_read_with_their_namespaces() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: List, items: [\
                    {apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: shop}},\
                    {apiVersion: v1, kind: Namespace, metadata: {name: shop}}]}\n---\n";
        let keys: Vec<String> = read_bundle(text).iter().map(|object| object.key.to_string()).collect();
        assert_eq!(keys, ["ConfigMap default/a", "apps/Deployment shop/b", "Namespace shop"]);
    }

    #[test]
    fn a_live_object_with_a_part_that_the_revision_drops_is_not_as_declared() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {n: '1', part-1: ''}}";
        let declared = &read_bundle(text)[0];
        let live = |data: Value| {
            let mut live = declared.manifest.clone();
            live["data"] = data;
            live
        };
        assert!(declared.is_met_by(&live(serde_json::json!({"n": "1", "part-1": "", "of-a-person": ""}))));
        assert!(!declared.is_met_by(&live(serde_json::json!({"n": "1", "part-1": "", "part-2": ""}))));
    }

    #[test]
    fn a_text_that_is_not_yaml_declares_nothing() {
        assert!(read_bundle("{apiVersion: v1").is_empty());
    }
}
