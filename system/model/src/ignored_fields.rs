//! Fields that a stack declares at creation and then leaves to other field managers: JSON pointers in an annotation.
//!
//! The annotation is applied with the object, so that its metadata alone tells which managed fields to ignore.

use serde_json::Value;
use thiserror::Error;

use crate::ownership::is_ownership_key;

/// Annotation of an object, or of a stack for all of its objects: JSON pointers, separated by commas or white space. A list
/// index stands for every element of the list.
pub const IGNORE_ANNOTATION: &str = "sindri.dev/ignore";

/// Most pointers of one object.
const POINTERS_MAX: usize = 64;

/// Top-level fields that identify an object and cannot be ignored. Single labels and annotations can, except those that
/// prove ownership.
const FIXED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Parsed list of JSON pointers to ignored fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFields(Vec<Vec<String>>);

/// Reason why the annotation cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IgnoreError {
    /// A pointer does not begin with a slash, or has an invalid escape.
    #[error("{IGNORE_ANNOTATION}: {0:?} is not a JSON pointer; an example is /spec/replicas")]
    Malformed(String),
    /// A pointer covers a field that identifies the object.
    #[error("{IGNORE_ANNOTATION}: {0:?} cannot be ignored")]
    Fixed(String),
    /// There are too many pointers.
    #[error("{IGNORE_ANNOTATION}: more than {POINTERS_MAX} pointers")]
    TooMany,
}

impl IgnoredFields {
    /// Parses the value of the annotation.
    pub fn parse(text: &str) -> Result<Self, IgnoreError> {
        let words = text.split([',', ' ', '\n', '\t']).filter(|word| !word.is_empty());
        let pointers: Vec<_> = words.map(parse_pointer).collect::<Result<_, _>>()?;
        if pointers.len() > POINTERS_MAX { Err(IgnoreError::TooMany) } else { Ok(Self(pointers)) }
    }

    /// Reads the annotation of an object's metadata; a value that cannot be parsed counts as empty.
    pub fn from_metadata(metadata: &Value) -> Self {
        let text = metadata["annotations"][IGNORE_ANNOTATION].as_str();
        text.and_then(|text| Self::parse(text).ok()).unwrap_or_default()
    }

    /// Returns true if no field is ignored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a `fieldsV1` set has the annotation.
    pub fn is_annotation_in(fields: &Value) -> bool {
        !fields["f:metadata"]["f:annotations"][format!("f:{IGNORE_ANNOTATION}")].is_null()
    }

    /// Removes the fields from a `fieldsV1` set.
    pub fn remove_from_managed_fields(&self, fields: &mut Value) {
        self.0.iter().for_each(|pointer| remove_managed_field(fields, pointer));
    }

    /// Sets the fields of a manifest to the values of the live object.
    pub fn copy_live_values(&self, manifest: &mut Value, live: &Value) {
        self.0.iter().for_each(|pointer| copy_live_value(manifest, live, pointer));
    }
}

fn parse_pointer(word: &str) -> Result<Vec<String>, IgnoreError> {
    let malformed = || IgnoreError::Malformed(word.to_owned());
    let parts: Vec<&str> = word.strip_prefix('/').ok_or_else(malformed)?.split('/').collect();
    let unescape = |part: &str| {
        let is_valid = part.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        is_valid.then(|| part.replace("~1", "/").replace("~0", "~")).ok_or_else(malformed)
    };
    let parts: Vec<String> = parts.into_iter().map(unescape).collect::<Result<_, _>>()?;
    let is_plain_metadata = matches!(parts.as_slice(), [_, section, name]
        if ["labels", "annotations"].contains(&section.as_str()) && !is_ownership_key(section, name));
    if parts[0].is_empty() || (FIXED.contains(&parts[0].as_str()) && !is_plain_metadata) {
        return Err(IgnoreError::Fixed(word.to_owned()));
    }
    Ok(parts)
}

fn is_index(part: &str) -> bool {
    part == "-" || part.parse::<usize>().is_ok()
}

fn remove_managed_field(fields: &mut Value, pointer: &[String]) {
    let (Some(children), Some((first, rest))) = (fields.as_object_mut(), pointer.split_first()) else { return };
    let matches_first = |name: &str| {
        name.strip_prefix("f:") == Some(first)
            || (is_index(first) && (name.starts_with("k:") || name.starts_with("v:")))
    };
    if rest.is_empty() {
        children.retain(|name, _| !matches_first(name));
    } else {
        children
            .iter_mut()
            .filter(|(name, _)| matches_first(name))
            .for_each(|(_, child)| remove_managed_field(child, rest));
        // A parent without further fields of ours is ignored too: the server drops it together with the field.
        children
            .retain(|name, child| !(matches_first(name) && child.as_object().is_some_and(serde_json::Map::is_empty)));
    }
}

fn copy_live_value(manifest: &mut Value, live: &Value, pointer: &[String]) {
    let Some((first, rest)) = pointer.split_first() else { return };
    match manifest {
        Value::Object(fields) if rest.is_empty() => {
            match live.get(first) {
                Some(value) => fields.insert(first.clone(), value.clone()),
                // Another client removed it.
                None => fields.remove(first),
            };
        }
        Value::Object(fields) => {
            if let (Some(child), Some(live)) = (fields.get_mut(first), live.get(first)) {
                copy_live_value(child, live, rest);
            }
        }
        Value::Array(elements) if is_index(first) && !rest.is_empty() => {
            for (index, element) in elements.iter_mut().enumerate() {
                if let Some(live) = find_same_element(element, index, live) {
                    copy_live_value(element, live, rest);
                }
            }
        }
        _ => {}
    }
}

/// Returns the live element that corresponds to an element of a list: the one of the same `name`, or of the same index.
fn find_same_element<'a>(element: &Value, index: usize, live: &'a Value) -> Option<&'a Value> {
    match &element["name"] {
        Value::Null => live.get(index),
        name => live.as_array()?.iter().find(|live| live["name"] == *name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ignored_fields_are_removed_from_the_managed_fields() {
        let ignored = IgnoredFields::parse("/spec/replicas, /spec/template/containers/0/image").unwrap();
        let mut fields = json!({"f:spec": {
            "f:replicas": {}, "f:paused": {},
            "f:template": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}},
        }});
        ignored.remove_from_managed_fields(&mut fields);
        let left = json!({"f:paused": {}, "f:template": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}}}}});
        assert_eq!(fields, json!({"f:spec": left}));
        let (mut alone, mut gone) = (json!({"f:spec": {"f:replicas": {}}}), json!({}));
        ignored.remove_from_managed_fields(&mut alone);
        ignored.remove_from_managed_fields(&mut gone);
        assert_eq!(alone, gone, "an empty parent is removed too");
    }

    #[test]
    fn ignored_fields_keep_their_live_values() {
        let ignored = IgnoredFields::parse("/spec/replicas /spec/containers/0/image /metadata/labels/a~1b").unwrap();
        let mut manifest = json!({"metadata": {"labels": {"a/b": "1"}}, "spec": {
            "replicas": 2, "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
        }});
        let live = json!({"metadata": {"labels": {"a/b": "9"}}, "spec": {
            "replicas": 7, "containers": [{"name": "side", "image": "s:1"}, {"name": "b", "image": "b:2"}],
        }});
        ignored.copy_live_values(&mut manifest, &live);
        let containers = json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]);
        let kept = json!({"metadata": {"labels": {"a/b": "9"}}, "spec": {"replicas": 7, "containers": containers}});
        assert_eq!(manifest, kept);
    }

    #[test]
    fn fields_that_identify_an_object_cannot_be_ignored() {
        let ownership = ["/metadata/labels/brokkr.io~1stack", "/metadata/annotations/brokkr.io~1stack-id"];
        for word in ["/metadata/name", "/kind", "/", "/metadata/labels", "/metadata"].into_iter().chain(ownership) {
            assert_eq!(IgnoredFields::parse(word), Err(IgnoreError::Fixed(word.to_owned())));
        }
        for word in ["spec/replicas", "/spec/a~b", "$.spec"] {
            assert_eq!(IgnoredFields::parse(word), Err(IgnoreError::Malformed(word.to_owned())));
        }
    }
}
