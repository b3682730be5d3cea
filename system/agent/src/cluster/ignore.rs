//! Fields that a stack declares at first and then leaves to others: JSON pointers in an annotation of the object.
//!
//! The annotation travels with the object, so that whoever reads its metadata knows which fields do not count.

use serde_json::Value;
use thiserror::Error;

use crate::cluster::ownership::is_mark;

/// On an object, or on a stack for all of its objects: JSON pointers, separated by commas or white space. An index stands
/// for every element of a list.
pub const IGNORE_ANNOTATION: &str = "sindri.dev/ignore";

/// More would be a mistake.
const POINTERS_MAX: usize = 64;

/// What an object's metadata, identity or kind consists of is never left to others; nor is a mark, which says whose it is.
const FIXED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Fields that are left to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored(Vec<Vec<String>>);

/// What is no list of pointers.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IgnoreError {
    /// It does not begin with a slash, or has a tilde that stands for nothing.
    #[error("{IGNORE_ANNOTATION}: {0:?} is no JSON pointer; it has to read like /spec/replicas")]
    Malformed(String),
    /// It would cover what makes the object what it is.
    #[error("{IGNORE_ANNOTATION}: {0:?} cannot be left to others")]
    Fixed(String),
    /// Too many.
    #[error("{IGNORE_ANNOTATION}: more than {POINTERS_MAX} pointers")]
    TooMany,
}

impl Ignored {
    /// Reads the annotation.
    pub fn parse(text: &str) -> Result<Self, IgnoreError> {
        let words = text.split([',', ' ', '\n', '\t']).filter(|word| !word.is_empty());
        let pointers: Vec<_> = words.map(pointer).collect::<Result<_, _>>()?;
        if pointers.len() > POINTERS_MAX { Err(IgnoreError::TooMany) } else { Ok(Self(pointers)) }
    }

    /// Those of an object's metadata; what cannot be read there counts for nothing.
    pub fn of(metadata: &Value) -> Self {
        let text = metadata["annotations"][IGNORE_ANNOTATION].as_str();
        text.and_then(|text| Self::parse(text).ok()).unwrap_or_default()
    }

    /// Whether nothing is left to others.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the fields out of a set of managed fields.
    pub fn strip(&self, fields: &mut Value) {
        self.0.iter().for_each(|pointer| strip(fields, pointer));
    }

    /// Gives the fields of a manifest the values that they have in the cluster.
    pub fn keep_live(&self, manifest: &mut Value, live: &Value) {
        self.0.iter().for_each(|pointer| keep_live(manifest, live, pointer));
    }
}

fn pointer(word: &str) -> Result<Vec<String>, IgnoreError> {
    let malformed = || IgnoreError::Malformed(word.to_owned());
    let parts: Vec<&str> = word.strip_prefix('/').ok_or_else(malformed)?.split('/').collect();
    let unescaped = |part: &str| {
        let is_sound = part.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        is_sound.then(|| part.replace("~1", "/").replace("~0", "~")).ok_or_else(malformed)
    };
    let parts: Vec<String> = parts.into_iter().map(unescaped).collect::<Result<_, _>>()?;
    let is_other_metadata = matches!(parts.as_slice(), [_, section, name]
        if ["labels", "annotations"].contains(&section.as_str()) && !is_mark(section, name));
    if parts[0].is_empty() || (FIXED.contains(&parts[0].as_str()) && !is_other_metadata) {
        return Err(IgnoreError::Fixed(word.to_owned()));
    }
    Ok(parts)
}

fn is_index(part: &str) -> bool {
    part == "-" || part.parse::<usize>().is_ok()
}

fn strip(fields: &mut Value, pointer: &[String]) {
    let (Some(children), Some((first, rest))) = (fields.as_object_mut(), pointer.split_first()) else { return };
    let is_meant = |name: &str| {
        name.strip_prefix("f:") == Some(first)
            || (is_index(first) && (name.starts_with("k:") || name.starts_with("v:")))
    };
    if rest.is_empty() {
        children.retain(|name, _| !is_meant(name));
    } else {
        children.iter_mut().filter(|(name, _)| is_meant(name)).for_each(|(_, child)| strip(child, rest));
        // A parent of which nothing else is ours does not count either: it is gone as soon as the field is.
        children.retain(|name, child| !(is_meant(name) && child.as_object().is_some_and(serde_json::Map::is_empty)));
    }
}

fn keep_live(manifest: &mut Value, live: &Value, pointer: &[String]) {
    let Some((first, rest)) = pointer.split_first() else { return };
    match manifest {
        Value::Object(fields) if rest.is_empty() => {
            match live.get(first) {
                Some(value) => fields.insert(first.clone(), value.clone()),
                // Somebody took it away.
                None => fields.remove(first),
            };
        }
        Value::Object(fields) => {
            if let (Some(child), Some(live)) = (fields.get_mut(first), live.get(first)) {
                keep_live(child, live, rest);
            }
        }
        Value::Array(elements) if is_index(first) && !rest.is_empty() => {
            for (index, element) in elements.iter_mut().enumerate() {
                if let Some(live) = same_element(element, index, live) {
                    keep_live(element, live, rest);
                }
            }
        }
        _ => {}
    }
}

/// The live element that an element of a list means: the one of its name, or of its place.
fn same_element<'a>(element: &Value, index: usize, live: &'a Value) -> Option<&'a Value> {
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
    fn fields_that_are_left_to_others_are_no_part_of_what_we_manage() {
        let ignored = Ignored::parse("/spec/replicas, /spec/template/containers/0/image").unwrap();
        let mut fields = json!({"f:spec": {
            "f:replicas": {}, "f:paused": {},
            "f:template": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}},
        }});
        ignored.strip(&mut fields);
        let left = json!({"f:paused": {}, "f:template": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}}}}});
        assert_eq!(fields, json!({"f:spec": left}));
        let (mut alone, mut gone) = (json!({"f:spec": {"f:replicas": {}}}), json!({}));
        ignored.strip(&mut alone);
        ignored.strip(&mut gone);
        assert_eq!(alone, gone, "whether a parent is left over does not count");
    }

    #[test]
    fn they_keep_the_value_that_they_have() {
        let ignored = Ignored::parse("/spec/replicas /spec/containers/0/image /metadata/labels/a~1b").unwrap();
        let mut manifest = json!({"metadata": {"labels": {"a/b": "1"}}, "spec": {
            "replicas": 2, "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
        }});
        let live = json!({"metadata": {"labels": {"a/b": "9"}}, "spec": {
            "replicas": 7, "containers": [{"name": "side", "image": "s:1"}, {"name": "b", "image": "b:2"}],
        }});
        ignored.keep_live(&mut manifest, &live);
        let containers = json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]);
        let kept = json!({"metadata": {"labels": {"a/b": "9"}}, "spec": {"replicas": 7, "containers": containers}});
        assert_eq!(manifest, kept);
    }

    #[test]
    fn what_makes_an_object_what_it_is_cannot_be_left_to_others() {
        let marks = ["/metadata/labels/brokkr.io~1stack", "/metadata/annotations/brokkr.io~1stack-id"];
        for word in ["/metadata/name", "/kind", "/", "/metadata/labels", "/metadata"].into_iter().chain(marks) {
            assert_eq!(Ignored::parse(word), Err(IgnoreError::Fixed(word.to_owned())));
        }
        for word in ["spec/replicas", "/spec/a~b", "$.spec"] {
            assert_eq!(Ignored::parse(word), Err(IgnoreError::Malformed(word.to_owned())));
        }
    }
}
