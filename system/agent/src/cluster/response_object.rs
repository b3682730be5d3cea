//! Deserialization of objects in responses. Managed fields are often more than half of an object and only the agent's own
//! entry is used, as a whole, so they are kept as JSON text instead of a tree.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sindri_model::IgnoredFields;

/// Field manager of everything that the agent applies.
pub(super) const FIELD_MANAGER: &str = "sindri-agent";

/// An object, or a Status, in a response.
pub(super) struct ResponseObject<'a> {
    /// The object without its managed fields.
    pub value: Value,
    managed_fields: Vec<ManagedFieldsEntry<'a>>,
}

/// One entry of `managedFields`.
#[derive(Deserialize)]
struct ManagedFieldsEntry<'a> {
    #[serde(borrow)]
    manager: Option<Text<'a>>,
    #[serde(borrow)]
    operation: Option<Text<'a>>,
    #[serde(borrow)]
    subresource: Option<Text<'a>>,
    #[serde(borrow)]
    time: Option<Text<'a>>,
    #[serde(borrow, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

/// String that borrows from the response if it has no escapes. A newtype, because serde does not borrow a `Cow` inside an option.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Hash of the agent's managed fields of an object and of the time of its last apply.
///
/// The server removes a field from our entry as soon as another client changes or removes its value. While the hash stays
/// the same, so does every declared value that is not ignored. Comparable only within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedFieldsHash(u64);

impl AppliedFieldsHash {
    /// Hashes `time` and `fieldsV1` of an entry, as the server serialized them.
    pub fn new(time: &str, fields: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (time, fields).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl ResponseObject<'_> {
    pub(super) fn metadata(&self) -> &Value {
        &self.value["metadata"]
    }

    /// Returns the hash of the agent's own entry, without ignored fields.
    pub(super) fn applied_fields(&self) -> Option<AppliedFieldsHash> {
        let is = |text: &Option<Text<'_>>, expected: &str| text.as_ref().is_some_and(|text| text.0 == expected);
        let is_ours = |entry: &&ManagedFieldsEntry<'_>| {
            is(&entry.manager, FIELD_MANAGER) && is(&entry.operation, "Apply") && entry.subresource.is_none()
        };
        let ours = self.managed_fields.iter().find(is_ours)?;
        let time = ours.time.as_ref().map_or("", |time| &time.0);
        let fields = ours.fields.map_or("", RawValue::get);
        let ignored = IgnoredFields::from_metadata(self.metadata());
        if ignored.is_empty() {
            return Some(AppliedFieldsHash::new(time, fields));
        }
        let text = fields;
        let mut fields: Value = serde_json::from_str(text).unwrap_or_default();
        if !IgnoredFields::is_annotation_in(&fields) {
            // Another client set the annotation, to keep its own changes.
            return Some(AppliedFieldsHash::new(time, text));
        }
        ignored.remove_from_managed_fields(&mut fields);
        Some(AppliedFieldsHash::new(time, &fields.to_string()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ResponseObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut object, metadata) = deserializer.deserialize_map(SplitField::<Metadata<'a>>::new("metadata"))?;
        let Metadata { fields, managed_fields } = metadata.unwrap_or_default();
        object.insert("metadata".to_owned(), fields);
        Ok(Self { value: Value::Object(object), managed_fields })
    }
}

/// Metadata of an object, with its managed fields set apart.
#[derive(Default)]
struct Metadata<'a> {
    fields: Value,
    managed_fields: Vec<ManagedFieldsEntry<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Metadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let split = SplitField::<Vec<ManagedFieldsEntry<'a>>>::new("managedFields");
        let (fields, managed_fields) = deserializer.deserialize_map(split)?;
        Ok(Self { fields: Value::Object(fields), managed_fields: managed_fields.unwrap_or_default() })
    }
}

/// Visitor of a mapping that deserializes one field into `T` and the others into values.
struct SplitField<T> {
    name: &'static str,
    split: PhantomData<T>,
}

impl<T> SplitField<T> {
    fn new(name: &'static str) -> Self {
        Self { name, split: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for SplitField<T> {
    type Value = (Map<String, Value>, Option<T>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut rest, mut split) = (Map::new(), None);
        while let Some(name) = fields.next_key::<String>()? {
            if name == self.name {
                split = fields.next_value()?;
            } else {
                rest.insert(name, fields.next_value()?);
            }
        }
        Ok((rest, split))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &str = r#"{"f:data":{"f:a":{},"f:b":{}}}"#;

    fn response(managers: &str) -> String {
        format!(
            r#"{{"kind":"K","metadata":{{"managedFields":{managers},"name":"a\n","labels":{{"x":"y"}}}},"data":{{}}}}"#
        )
    }

    fn manager(name: &str, more: &str, fields: &str) -> String {
        format!(r#"{{"manager":"{name}","operation":"Apply","time":"now","fieldsV1":{fields}{more}}}"#)
    }

    fn applied_fields(text: &str) -> Option<AppliedFieldsHash> {
        serde_json::from_str::<ResponseObject<'_>>(text).unwrap().applied_fields()
    }

    #[test]
    fn all_fields_except_the_managed_fields_are_kept() {
        for managers in ["null", "[]", &format!("[{}]", manager("x", "", FIELDS))] {
            let text = response(managers);
            let received: ResponseObject<'_> = serde_json::from_str(&text).unwrap();
            let expected = json!({"kind": "K", "metadata": {"name": "a\n", "labels": {"x": "y"}}, "data": {}});
            assert_eq!(received.value, expected);
        }
    }

    #[test]
    fn only_the_agents_apply_entry_of_the_main_resource_counts() {
        let others = [manager("kubectl", "", "{}"), manager(FIELD_MANAGER, r#","subresource":"status""#, "{}")];
        assert_eq!(applied_fields(&response(&format!("[{}]", others.join(",")))), None);
        let all = format!("[{},{}]", others.join(","), manager(FIELD_MANAGER, "", FIELDS));
        assert_eq!(applied_fields(&response(&all)), Some(AppliedFieldsHash::new("now", FIELDS)));
        assert_ne!(applied_fields(&response(&all)), Some(AppliedFieldsHash::new("then", FIELDS)));
        assert_ne!(applied_fields(&response(&all)), Some(AppliedFieldsHash::new("now", "{}")));
    }

    #[test]
    fn ignored_fields_do_not_change_the_hash_if_the_agent_applied_the_annotation() {
        let hash = |metadata: &str, data: &str| {
            let fields = format!(r#"{{"f:metadata":{metadata},"f:data":{data}}}"#);
            let managers = manager(FIELD_MANAGER, "", &fields);
            applied_fields(&format!(
                r#"{{"metadata":{{"annotations":{{"sindri.dev/ignore":"/data/b"}},"managedFields":[{managers}]}}}}"#
            ))
        };
        let (ours, theirs) = (r#"{"f:annotations":{"f:sindri.dev/ignore":{}}}"#, "{}");
        let (both, a, b) = (r#"{"f:a":{},"f:b":{}}"#, r#"{"f:a":{}}"#, r#"{"f:b":{}}"#);
        assert_eq!(hash(ours, both), hash(ours, a));
        assert_ne!(hash(ours, both), hash(ours, b));
        assert_ne!(hash(theirs, both), hash(theirs, a), "another client set the annotation");
    }

    #[test]
    fn a_response_that_is_not_an_object_is_an_error() {
        for text in ["[]", "1", "<html>", r#"{"metadata":[]}"#, r#"{"metadata":{"managedFields":{}}}"#] {
            assert!(serde_json::from_str::<ResponseObject<'_>>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<ResponseObject<'_>>(r#"{"metadata":null}"#).is_ok());
    }
}
