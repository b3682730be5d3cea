//! JSON that stays text: most of what is declared is only handed on, and as a tree it would take many times the room. How a text
//! becomes JSON is the business of whoever reads it; here it is looked into.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::strict::Strict;

/// Reads a tree of which no key means anything. The library's own way of reading one takes a mapping for something else if it
/// has a key that is the library's secret, and anybody can write that.
pub fn json_value(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).map(|Strict(value)| value)
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// The text of a value.
    pub fn of(value: &Value) -> Self {
        Self(value.to_string())
    }

    /// Of what was written as JSON.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// As it is.
    pub fn into_string(self) -> String {
        self.0
    }

    /// As a tree.
    pub fn value(&self) -> Value {
        json_value(self.0.as_bytes()).expect("what is kept as JSON was written as JSON")
    }

    /// Whether it is a mapping, be it an empty one.
    pub(crate) fn is_mapping(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Its fields; none if it is no mapping.
    pub fn fields(&self) -> Fields<'_> {
        Fields::read(&self.0)
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fields of a mapping, each of them still a text, in the order in which they are written.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(Name<'a>, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn read(json: &'a str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known.0 == name).map(|(_, value)| *value)
    }

    /// The fields of a field; none if it is no mapping.
    pub fn fields(&self, name: &str) -> Self {
        self.get(name).map_or_else(Self::default, |value| Self::read(value.get()))
    }

    /// The text of a field, if it is one.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name)?)
    }

    /// Those that are text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        self.iter().filter_map(|(name, value)| Some((name.to_owned(), text(value)?.into_owned())))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&*name.0, *value))
    }
}

fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(value.get()).ok().map(|Name(text)| text)
}

/// Borrowed where it has no escapes.
#[derive(Debug, serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_found_by_their_names_and_are_the_texts_that_they_were() {
        let text = JsonText::of(&json!({"a": {"b\n": "c\"", "d": [1, 2]}, "e": null}));
        let fields = text.fields();
        assert_eq!(fields.fields("a").text("b\n").as_deref(), Some("c\""));
        assert_eq!(fields.fields("a").get("d").map(RawValue::get), Some("[1,2]"));
        assert_eq!(fields.fields("a").iter().map(|(name, _)| name).collect::<Vec<_>>(), ["b\n", "d"]);
        assert_eq!(text.value()["a"]["d"], json!([1, 2]));
    }

    #[test]
    fn no_key_has_a_meaning() {
        for value in ["x", "{\"a\":1}"] {
            let value = json!({"data": {"$serde_json::private::RawValue": value}});
            let text = JsonText::new(format!("{{\"data\":{}}}", value["data"]));
            assert_eq!(text.value(), value);
            assert_eq!(text.fields().fields("data").iter().count(), 1);
        }
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [0.1 + 0.2, f64::MAX, f64::MIN_POSITIVE, 1e23, 9_007_199_254_740_993.0] {
            assert_eq!(JsonText::of(&json!(number)).value(), json!(number));
        }
    }

    #[test]
    fn what_has_no_fields_or_is_no_text_has_none() {
        let text = JsonText::of(&json!({"a": [{"b": 1}], "e": null, "f": 7}));
        assert!(text.fields().fields("a").iter().next().is_none());
        assert!(text.fields().fields("e").iter().next().is_none());
        assert!(text.fields().fields("missing").iter().next().is_none());
        assert_eq!(text.fields().text("f"), None);
        assert!(JsonText::of(&json!("text")).fields().iter().next().is_none());
    }
}
