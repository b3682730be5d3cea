//! Objects as the server sends them, read once. Who manages which field is often more than half of an object, and only our
//! own fields are looked at, as a whole: they stay the text that they are.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::cluster::ignore::Ignored;

/// The field manager of everything that the agent applies.
pub(super) const FIELD_MANAGER: &str = "sindri-agent";

/// An object, or another answer that has the form of one.
pub(super) struct Received<'a> {
    /// All of it but the managed fields.
    pub object: Value,
    managers: Vec<Manager<'a>>,
}

/// One entry of the managed fields.
#[derive(Deserialize)]
struct Manager<'a> {
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

/// Borrowed where it has no escapes: inside an option serde borrows only what is a type of its own.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Stands for the fields that we applied to an object, and when: the server takes a field from us as soon as anybody
/// else gives it another value or takes it away, so that as long as this is the same, so is every declared value that is
/// not left to others. It is compared with others of the same process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Of fields, as the server writes them.
    pub fn new(time: &str, fields: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (time, fields).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Received<'_> {
    pub(super) fn metadata(&self) -> &Value {
        &self.object["metadata"]
    }

    /// What we own of it.
    pub(super) fn ours(&self) -> Option<Fingerprint> {
        let is = |text: &Option<Text<'_>>, wanted: &str| text.as_ref().is_some_and(|text| text.0 == wanted);
        let is_ours = |entry: &&Manager<'_>| {
            is(&entry.manager, FIELD_MANAGER) && is(&entry.operation, "Apply") && entry.subresource.is_none()
        };
        let ours = self.managers.iter().find(is_ours)?;
        let time = ours.time.as_ref().map_or("", |time| &time.0);
        let fields = ours.fields.map_or("", RawValue::get);
        let ignored = Ignored::of(self.metadata());
        if ignored.is_empty() {
            return Some(Fingerprint::new(time, fields));
        }
        let mut fields: Value = serde_json::from_str(fields).unwrap_or_default();
        ignored.strip(&mut fields);
        Some(Fingerprint::new(time, &fields.to_string()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Received<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Apart { rest, apart } = deserializer.deserialize_map(Fields::<Metadata<'a>>::of("metadata"))?;
        let mut object = rest;
        let Metadata { fields, managers } = apart.unwrap_or_default();
        object.insert("metadata".to_owned(), fields);
        Ok(Self { object: Value::Object(object), managers })
    }
}

/// The metadata of an object, taken apart.
#[derive(Default)]
struct Metadata<'a> {
    fields: Value,
    managers: Vec<Manager<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Metadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Apart { rest, apart } = deserializer.deserialize_map(Fields::<Vec<Manager<'a>>>::of("managedFields"))?;
        Ok(Self { fields: Value::Object(rest), managers: apart.unwrap_or_default() })
    }
}

/// Fields, of which one is read in a way of its own.
struct Apart<T> {
    rest: Map<String, Value>,
    apart: Option<T>,
}

/// Reads them.
struct Fields<T> {
    apart: &'static str,
    of: std::marker::PhantomData<T>,
}

impl<T> Fields<T> {
    fn of(apart: &'static str) -> Self {
        Self { apart, of: std::marker::PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = Apart<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}", self.apart)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Apart<T>, A::Error> {
        let (mut rest, mut apart) = (Map::new(), None);
        while let Some(name) = fields.next_key::<String>()? {
            if name == self.apart {
                apart = fields.next_value()?;
            } else {
                rest.insert(name, fields.next_value()?);
            }
        }
        Ok(Apart { rest, apart })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &str = r#"{"f:data":{"f:a":{},"f:b":{}}}"#;

    fn sent(managers: &str) -> String {
        format!(
            r#"{{"kind":"K","metadata":{{"managedFields":{managers},"name":"a\n","labels":{{"x":"y"}}}},"data":{{}}}}"#
        )
    }

    fn manager(name: &str, more: &str, fields: &str) -> String {
        format!(r#"{{"manager":"{name}","operation":"Apply","time":"now","fieldsV1":{fields}{more}}}"#)
    }

    fn ours(text: &str) -> Option<Fingerprint> {
        serde_json::from_str::<Received<'_>>(text).unwrap().ours()
    }

    #[test]
    fn everything_but_the_managed_fields_is_as_it_was_sent() {
        for managers in ["null", "[]", &format!("[{}]", manager("x", "", FIELDS))] {
            let text = sent(managers);
            let received: Received<'_> = serde_json::from_str(&text).unwrap();
            let expected = json!({"kind": "K", "metadata": {"name": "a\n", "labels": {"x": "y"}}, "data": {}});
            assert_eq!(received.object, expected);
        }
    }

    #[test]
    fn only_what_we_applied_to_the_object_itself_is_ours() {
        let others = [manager("kubectl", "", "{}"), manager(FIELD_MANAGER, r#","subresource":"status""#, "{}")];
        assert_eq!(ours(&sent(&format!("[{}]", others.join(",")))), None);
        let all = format!("[{},{}]", others.join(","), manager(FIELD_MANAGER, "", FIELDS));
        assert_eq!(ours(&sent(&all)), Some(Fingerprint::new("now", FIELDS)));
        assert_ne!(ours(&sent(&all)), Some(Fingerprint::new("then", FIELDS)));
        assert_ne!(ours(&sent(&all)), Some(Fingerprint::new("now", "{}")));
    }

    #[test]
    fn what_is_left_to_others_makes_no_difference() {
        let text = |fields: &str| {
            let managers = manager(FIELD_MANAGER, "", fields);
            format!(
                r#"{{"metadata":{{"annotations":{{"sindri.dev/ignore":"/data/b"}},"managedFields":[{managers}]}}}}"#
            )
        };
        assert_eq!(ours(&text(FIELDS)), ours(&text(r#"{"f:data":{"f:a":{}}}"#)));
        assert_ne!(ours(&text(FIELDS)), ours(&text(r#"{"f:data":{"f:b":{}}}"#)));
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["[]", "1", "<html>", r#"{"metadata":[]}"#, r#"{"metadata":{"managedFields":{}}}"#] {
            assert!(serde_json::from_str::<Received<'_>>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Received<'_>>(r#"{"metadata":null}"#).is_ok());
    }
}
