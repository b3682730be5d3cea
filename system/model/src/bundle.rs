//! A bundle: the YAML text of one revision as the objects that it declares.
//!
//! Parsing says everything that can be said without a cluster. Whether a kind exists, and whether it is
//! namespaced, only the cluster knows; that is the agent's business.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::yaml::{self, Document};

/// Which object, in whatever version it is served: group, kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Empty for the core group.
    pub group: String,
    /// As the manifest writes it.
    pub kind: String,
    /// `None` for cluster-scoped objects, and before the scope is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

/// By name first: it is what tells most keys apart, and ordered maps of thousands of them are searched all the time.
impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let rest = || (&self.kind, &self.namespace, &self.group).cmp(&(&other.kind, &other.namespace, &other.group));
        self.name.cmp(&other.name).then_with(rest)
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// One declared object.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredObject {
    /// The document it came from, counted from 1.
    pub document: usize,
    /// Which object; whoever notes it shares it.
    pub key: Arc<ObjectKey>,
    /// The version part of `apiVersion`.
    pub version: String,
    /// Its annotations, those that are text.
    pub annotations: BTreeMap<String, String>,
    /// The whole manifest.
    pub manifest: Value,
}

/// The objects of one revision, in the order of the text, each key once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    objects: Vec<DeclaredObject>,
}

/// Everything that is wrong with a bundle.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", list(.faults))]
pub struct BundleError {
    /// At least one.
    pub faults: Vec<BundleFault>,
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BundleFault {
    /// The document is not YAML.
    #[error("{0}")]
    Yaml(#[from] yaml::YamlError),
    /// The document is YAML but no Kubernetes object.
    #[error("document {document}, line {line}: {reason}")]
    Manifest {
        /// Counted from 1.
        document: usize,
        /// Where the document starts.
        line: usize,
        /// What is missing or wrong.
        reason: String,
    },
    /// Two documents declare the same object.
    #[error("{key} is declared twice, in documents {first} and {second}")]
    Twice {
        /// The object.
        key: Arc<ObjectKey>,
        /// The earlier document.
        first: usize,
        /// The later one.
        second: usize,
    },
}

impl Bundle {
    /// Parses the text of a revision.
    pub fn parse(text: &str) -> Result<Self, BundleError> {
        let documents = yaml::parse_documents(text)
            .map_err(|errors| BundleError { faults: errors.into_iter().map(BundleFault::Yaml).collect() })?;
        let mut objects: Vec<DeclaredObject> = Vec::with_capacity(documents.len());
        let mut faults = Vec::new();
        for declared in documents.into_iter().flat_map(declared) {
            match declared {
                Ok(object) => objects.push(object),
                Err(fault) => faults.push(fault),
            }
        }
        faults.extend(twice(&objects));
        if faults.is_empty() { Ok(Self { objects }) } else { Err(BundleError { faults }) }
    }

    /// The objects in the order of the text.
    pub fn objects(&self) -> &[DeclaredObject] {
        &self.objects
    }

    /// The objects, owned.
    pub fn into_objects(self) -> Vec<DeclaredObject> {
        self.objects
    }
}

fn list(faults: &[BundleFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the objects that a document declares. A `List` stands for its items.
fn declared(document: Document) -> Vec<Result<DeclaredObject, BundleFault>> {
    let Document { index, line, mut content } = document;
    let read = |manifest| {
        declared_object(manifest, index).map_err(|reason| BundleFault::Manifest { document: index, line, reason })
    };
    if content["apiVersion"] == "v1" && content["kind"] == "List" {
        return match content["items"].take() {
            Value::Array(items) => items.into_iter().map(read).collect(),
            _ => Vec::new(),
        };
    }
    vec![read(content)]
}

fn declared_object(manifest: Value, document: usize) -> Result<DeclaredObject, String> {
    if !manifest.is_object() {
        return Err("not a Kubernetes object: expected a mapping".to_owned());
    }
    let api_version = non_empty(&manifest["apiVersion"]).ok_or("apiVersion is missing")?;
    let kind = non_empty(&manifest["kind"]).ok_or("kind is missing")?;
    let metadata = &manifest["metadata"];
    let name = match (non_empty(&metadata["name"]), metadata.get("generateName")) {
        (Some(name), _) => name,
        (None, Some(_)) => {
            return Err(format!("{kind}: generateName makes a new object at every pass; give it a name"));
        }
        (None, None) => return Err(format!("{kind}: metadata.name is missing")),
    };
    let (group, version) = match api_version.split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), api_version),
    };
    let key = Arc::new(ObjectKey { group, kind, namespace: non_empty(&metadata["namespace"]), name });
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let annotations =
        annotations.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    Ok(DeclaredObject { document, key, version, annotations, manifest })
}

fn non_empty(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn twice(objects: &[DeclaredObject]) -> Vec<BundleFault> {
    let mut first_seen = BTreeMap::new();
    let mut faults = Vec::new();
    for object in objects {
        if let Some(first) = first_seen.insert(&object.key, object.document) {
            faults.push(BundleFault::Twice { key: object.key.clone(), first, second: object.document });
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n";

    #[test]
    fn a_list_stands_for_its_items() {
        let text =
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web}\n";
        let bundle = Bundle::parse(text).unwrap();
        assert_eq!(bundle.objects()[0].key.to_string(), "apps/Deployment web");
    }

    #[test]
    fn an_object_declared_twice_is_an_error_with_both_places() {
        let error = Bundle::parse(&format!("{CONFIG}---\n{CONFIG}")).unwrap_err();
        assert_eq!(error.to_string(), "ConfigMap shop/a is declared twice, in documents 1 and 2");
    }

    #[test]
    fn every_incomplete_document_is_named() {
        let error = Bundle::parse(
            "kind: A\n---\napiVersion: v1\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\n---\n- 1\n",
        )
        .unwrap_err();
        assert_eq!(error.faults.len(), 4, "{error}");
        assert!(error.to_string().contains("document 3, line 4: Pod: generateName"), "{error}");
    }

    #[test]
    fn a_text_without_documents_is_an_empty_bundle() {
        assert!(Bundle::parse("# nothing\n---\n").unwrap().objects().is_empty());
    }
}
