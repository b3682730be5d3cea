//! Deserializes a JSON or YAML document into a JSON value and rejects duplicate keys, of which `serde_json::Value` would
//! keep the last.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Map, Number, Value};

/// Parses JSON strictly: duplicate keys are an error, and no key has a special meaning.
///
/// With the `raw_value` feature, `serde_json::Value` gives a private key of serde_json a special meaning. A manifest may
/// contain this key.
pub fn parse_json(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).map(|StrictValue(value)| value)
}

/// Reason why an integer is rejected.
const TOO_LARGE: &str = "an integer is too large for 64 bits: write it in quotes if it is text";

/// A value without duplicate keys.
pub(crate) struct StrictValue(pub Value);

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

/// Deserializes a value.
struct ValueVisitor;

impl<'de> DeserializeSeed<'de> for ValueVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    /// Visits an empty document.
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    /// An error without the value, which may be that of a Secret.
    fn visit_i128<E: Error>(self, _: i128) -> Result<Value, E> {
        Err(E::custom(TOO_LARGE))
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Value, E> {
        Err(E::custom(TOO_LARGE))
    }

    /// NaN and infinity become null: JSON cannot express them.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(ValueVisitor)? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key_seed(KeyVisitor)? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate entry with key {key:?}")));
            }
            map.insert(key, entries.next_value_seed(ValueVisitor)?);
        }
        Ok(Value::Object(map))
    }

    /// Visits a tagged value.
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        let (tag, value) = data.variant_seed(KeyVisitor)?;
        let value = value.newtype_variant_seed(ValueVisitor)?;
        // The form of a tag in `serde_yaml::Value`; a tag that consists of an exclamation mark keeps it as its name.
        let name = tag.strip_prefix('!').filter(|name| !name.is_empty()).unwrap_or(&tag);
        Ok(Value::Object(Map::from_iter([(format!("!{name}"), value)])))
    }
}

/// Deserializes a key into a string: JSON has only strings as keys.
struct KeyVisitor;

impl<'de> DeserializeSeed<'de> for KeyVisitor {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for KeyVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar key")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<String, E> {
        Ok(text)
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<String, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("NaN and infinity cannot be keys"))?;
        Ok(number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Parses with `serde_yaml::Value`, which rejects duplicate keys too.
    fn parse_with_serde_yaml(text: &str) -> Option<Value> {
        let value: serde_yaml::Value = serde_yaml::from_str(text).ok()?;
        serde_json::to_value(value).ok()
    }

    fn parse_strictly(text: &str) -> Option<Value> {
        serde_yaml::from_str(text).ok().map(|StrictValue(value)| value)
    }

    #[test]
    fn values_equal_those_of_serde_yaml() {
        for text in [
            "a: 1\nb: [x, 2.5, null, ~, true, -7, 0x1f, 1e3]\n",
            "1: a\n-2: b\ntrue: c\n1.5: d\nnull: e\n",
            "1: a\n-2: b\ntrue: c\n1.5: d\n",
            "a: !t [1, 2]\nb: !u {c: d}\nc: !!str 12\nd: !v word\n",
            "!t {a: 1}",
            "a: [!\n1:a]\nb: ! c\n",
            "? [a]\n: 1\n",
            "? !t a\n: 1\n",
            "a: &x {b: 1}\nc: *x\n",
            "a: 1\na: 2\n",
            "a: {b: 1, b: 2}\n",
            "n: .nan\ni: .inf\n",
            "a: 18446744073709551615\nb: -9223372036854775808\n",
            "a: 18446744073709551616\n",
            "a: 99999999999999999999999999999999999999999999\n",
            "<<: {a: 1}\nb: 2\n",
            "a: |\n  one\n  two\nb: >-\n  one\n  two\n",
            "",
            "just text",
            "a: 2026-01-01\nb: 0o17\nc: 017\nd: yes\n",
        ] {
            assert_eq!(parse_strictly(text), parse_with_serde_yaml(text), "{text}");
        }
    }

    #[test]
    fn keys_that_are_equal_as_json_are_duplicates() {
        assert_eq!(parse_strictly("1: a\n'1': b\n"), None, "one value would replace the other");
    }

    #[test]
    fn a_private_key_of_serde_json_has_no_special_meaning() {
        let text = r#"{"data":{"$serde_json::private::RawValue":"{\"a\":1}"}}"#;
        assert_eq!(parse_json(text.as_bytes()).unwrap().to_string(), text);
    }

    #[test]
    fn floats_are_parsed_exactly() {
        for number in [0.1 + 0.2, f64::MAX, f64::MIN_POSITIVE, 1e23, 9_007_199_254_740_993.0] {
            assert_eq!(parse_json(Value::from(number).to_string().as_bytes()).unwrap(), Value::from(number));
        }
    }

    proptest! {
        #[test]
        fn generated_documents_are_parsed_as_by_serde_yaml(text in "([a-c1-2]: ?[\\[{]?[a-b*&!0-9. ,:-]{0,6}[\\]}]?\n){0,5}") {
            let (strict, expected) = (parse_strictly(&text), parse_with_serde_yaml(&text));
            // The only difference: keys that are equal as JSON are duplicates here, but not for serde_yaml.
            if strict.is_some() || expected.is_none() {
                prop_assert_eq!(strict, expected);
            }
        }
    }
}
