//! A bundle: the YAML text of one revision, parsed into the objects that it declares.
//!
//! Parsing checks all that can be checked without a cluster. Agents check the rest, such as the existence of a kind.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::yaml::{self, Document};

/// Identity of an object, independent of API versions: group, kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` for cluster-scoped objects, and before the scope is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// Compares names first: most keys differ in their name, which makes lookups in large maps faster.
impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let compare_rest =
            || (&self.kind, &self.namespace, &self.group).cmp(&(&other.kind, &other.namespace, &other.group));
        self.name.cmp(&other.name).then_with(compare_rest)
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

/// An object that a bundle declares.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredObject {
    /// Number of its document, counted from 1.
    pub document: usize,
    /// Identity of the object.
    pub key: Arc<ObjectKey>,
    /// Version part of `apiVersion`.
    pub version: String,
    /// Annotations whose values are strings.
    pub annotations: BTreeMap<String, String>,
    /// Complete manifest.
    pub manifest: Value,
}

/// Objects of one revision in the order of the text, each key once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    objects: Vec<DeclaredObject>,
}

/// All errors in a bundle.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", join_messages(.errors))]
pub struct BundleError {
    /// At least one error.
    pub errors: Vec<DocumentError>,
}

/// One error in a bundle.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DocumentError {
    /// The document is not valid YAML.
    #[error("{0}")]
    Yaml(#[from] yaml::YamlError),
    /// The document is not a Kubernetes object.
    #[error("document {document}, line {line}: {reason}")]
    Manifest {
        /// Number of the document, counted from 1.
        document: usize,
        /// Line on which the document starts.
        line: usize,
        /// Description of the error.
        reason: String,
    },
    /// Two documents declare the same object.
    #[error("{key} is declared twice, in documents {first} and {second}")]
    Duplicate {
        /// Identity of the object.
        key: Arc<ObjectKey>,
        /// Number of the first document.
        first: usize,
        /// Number of the second document.
        second: usize,
    },
}

impl Bundle {
    /// Parses the text of a revision.
    pub fn parse(text: &str) -> Result<Self, BundleError> {
        let documents = yaml::parse_documents(text)
            .map_err(|errors| BundleError { errors: errors.into_iter().map(DocumentError::Yaml).collect() })?;
        let mut objects: Vec<DeclaredObject> = Vec::with_capacity(documents.len());
        let mut errors = Vec::new();
        for result in documents.into_iter().flat_map(read_objects) {
            match result {
                Ok(object) => objects.push(object),
                Err(error) => errors.push(error),
            }
        }
        errors.extend(find_duplicates(&objects));
        if errors.is_empty() { Ok(Self { objects }) } else { Err(BundleError { errors }) }
    }

    /// Returns the objects in the order of the text.
    pub fn objects(&self) -> &[DeclaredObject] {
        &self.objects
    }

    /// Returns the objects in the order of the text.
    pub fn into_objects(self) -> Vec<DeclaredObject> {
        self.objects
    }
}

fn join_messages(errors: &[DocumentError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the objects that a document declares. A `List` is replaced by its items.
fn read_objects(document: Document) -> Vec<Result<DeclaredObject, DocumentError>> {
    let Document { index, line, mut content } = document;
    let read_manifest = |manifest| {
        read_object(manifest, index).map_err(|reason| DocumentError::Manifest { document: index, line, reason })
    };
    if content["apiVersion"] == "v1" && content["kind"] == "List" {
        return match content["items"].take() {
            Value::Array(items) => items.into_iter().map(read_manifest).collect(),
            _ => Vec::new(),
        };
    }
    vec![read_manifest(content)]
}

fn read_object(manifest: Value, document: usize) -> Result<DeclaredObject, String> {
    if !manifest.is_object() {
        return Err("not a Kubernetes object: expected a mapping".to_owned());
    }
    let api_version = non_empty_string(&manifest["apiVersion"]).ok_or("apiVersion is missing")?;
    let kind = non_empty_string(&manifest["kind"]).ok_or("kind is missing")?;
    let metadata = &manifest["metadata"];
    let name = match (non_empty_string(&metadata["name"]), metadata.get("generateName")) {
        (Some(name), _) => name,
        (None, Some(_)) => {
            return Err(format!(
                "{kind}: generateName would create a new object in every pass; set metadata.name instead"
            ));
        }
        (None, None) => return Err(format!("{kind}: metadata.name is missing")),
    };
    let (group, version) = match api_version.split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), api_version),
    };
    let key = Arc::new(ObjectKey { group, kind, namespace: non_empty_string(&metadata["namespace"]), name });
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let annotations =
        annotations.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    Ok(DeclaredObject { document, key, version, annotations, manifest })
}

fn non_empty_string(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn find_duplicates(objects: &[DeclaredObject]) -> Vec<DocumentError> {
    let mut first_seen = BTreeMap::new();
    let mut errors = Vec::new();
    for object in objects {
        if let Some(first) = first_seen.insert(&object.key, object.document) {
            errors.push(DocumentError::Duplicate { key: object.key.clone(), first, second: object.document });
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n";

    #[test]
    fn a_list_is_replaced_by_its_items() {
        let text =
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web}\n";
        let bundle = Bundle::parse(text).unwrap();
        assert_eq!(bundle.objects()[0].key.to_string(), "apps/Deployment web");
    }

    #[test]
    fn a_duplicate_object_is_reported_with_both_documents() {
        let error = Bundle::parse(&format!("{CONFIG}---\n{CONFIG}")).unwrap_err();
        assert_eq!(error.to_string(), "ConfigMap shop/a is declared twice, in documents 1 and 2");
    }

    #[test]
    fn every_incomplete_document_is_reported() {
        let error = Bundle::parse(
            "kind: A\n---\napiVersion: v1\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\n---\n- 1\n",
        )
        .unwrap_err();
        assert_eq!(error.errors.len(), 4, "{error}");
        assert!(error.to_string().contains("document 3, line 4: Pod: generateName"), "{error}");
    }

    #[test]
    fn a_text_without_documents_is_an_empty_bundle() {
        assert!(Bundle::parse("# nothing\n---\n").unwrap().objects().is_empty());
    }
}
