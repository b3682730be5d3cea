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

/// `apiVersion` and `kind` of the document that declares on purpose that a bundle has no objects.
const EMPTY_BUNDLE: (&str, &str) = ("sindri.dev/v1", "EmptyBundle");
/// Text of a bundle without objects. Any other text without objects is an error: it would delete every object of its
/// stack by mistake.
pub const EMPTY_BUNDLE_TEXT: &str = "apiVersion: sindri.dev/v1\nkind: EmptyBundle\n";

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
    /// The parser itself has a fault; holds the message.
    #[error("{0}")]
    Internal(String),
    /// No document declares an object.
    #[error("the bundle declares no object; a bundle that removes every object of its stack is submitted with --empty")]
    NoObject,
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
        if let [document] = documents.as_slice()
            && is_empty_bundle(&document.content)
        {
            return Ok(Self::default());
        }
        let mut objects: Vec<DeclaredObject> = Vec::with_capacity(documents.len());
        let mut errors = Vec::new();
        for result in documents.into_iter().flat_map(read_objects) {
            match result {
                Ok(object) => objects.push(object),
                Err(error) => errors.push(error),
            }
        }
        if objects.is_empty() && errors.is_empty() {
            errors.push(DocumentError::NoObject);
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

fn is_empty_bundle(content: &Value) -> bool {
    content["apiVersion"] == EMPTY_BUNDLE.0 && content["kind"] == EMPTY_BUNDLE.1
}

/// Returns the objects that a document declares, at least one or an error. A `List` is replaced by its items.
fn read_objects(document: Document) -> Vec<Result<DeclaredObject, DocumentError>> {
    let Document { index, line, mut content } = document;
    let error = |reason| DocumentError::Manifest { document: index, line, reason };
    let read_manifest = |manifest| read_object(manifest, index).map_err(error);
    if is_empty_bundle(&content) {
        return vec![Err(error("an EmptyBundle must be the only document of its bundle".to_owned()))];
    }
    // A missing or empty list must not pass for a bundle that declares nothing.
    let is_list = content["kind"] == "List" && matches!(content["apiVersion"].as_str(), Some("v1") | None);
    match is_list.then(|| content["items"].take()) {
        None => vec![read_manifest(content)],
        Some(Value::Array(items)) if items.is_empty() => vec![Err(error("List: items is empty".to_owned()))],
        Some(Value::Array(items)) => items.into_iter().map(read_manifest).collect(),
        Some(Value::Null) => vec![Err(error("List: items is missing".to_owned()))],
        Some(_) => vec![Err(error("List: items is not a list".to_owned()))],
    }
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
        (None, None) if kind.ends_with("List") && manifest.get("items").is_some() => {
            return Err(format!("{kind} is not an object; write its items as documents, or as items of a v1 List"));
        }
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
    fn a_text_that_declares_no_object_is_an_error_with_its_line() {
        for (text, expected) in [
            ("# nothing\n---\n", "the bundle declares no object"),
            ("apiVersion: v1\nkind: List\nitems: []\n", "document 1, line 1: List: items is empty"),
            ("apiVersion: v1\nkind: List\nitems: {a: b}\n", "document 1, line 1: List: items is not a list"),
            ("apiVersion: v1\nkind: List\nitem: []\n", "document 1, line 1: List: items is missing"),
            ("kind: List\nitems:\n", "document 1, line 1: List: items is missing"),
            ("apiVersion: v1\nkind: ConfigMapList\nitems: []\n", "document 1, line 1: ConfigMapList is not an object"),
        ] {
            let error = Bundle::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            let after_another = Bundle::parse(&format!("{CONFIG}---\n{text}"));
            let is_list = text.contains("List");
            assert_eq!(after_another.is_err(), is_list, "a List without items is an error beside other documents too");
        }
    }

    #[test]
    fn an_empty_bundle_is_declared_by_a_document_of_its_own() {
        assert!(Bundle::parse(EMPTY_BUNDLE_TEXT).unwrap().objects().is_empty());
        let error = Bundle::parse(&format!("{CONFIG}---\n{EMPTY_BUNDLE_TEXT}")).unwrap_err().to_string();
        assert_eq!(error, "document 2, line 4: an EmptyBundle must be the only document of its bundle");
    }
}
