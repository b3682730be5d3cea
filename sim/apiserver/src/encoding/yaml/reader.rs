//! Parses bodies in JSON and YAML. The only file that uses the YAML library.
//!
//! The caller limits the size of bodies; the parsers limit nesting and aliases.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::lines;

/// Parses one JSON document.
pub(crate) fn read_json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| to_go_error(body, &error))
}

/// Parses one JSON document, and returns its repeated fields, of which the last is used.
pub(crate) fn read_json_with_duplicates(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let mut duplicates = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let mut place = String::new();
    let value = Noting { duplicates: &mut duplicates, place: &mut place }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value)).map_err(|error| to_go_error(body, &error))?;
    Ok((value, duplicates))
}

/// Parses the first YAML document. JSON is YAML, too.
pub(crate) fn read_yaml(body: &[u8]) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let first = serde_yaml::Deserializer::from_slice(body).next();
    match first.map(Value::deserialize) {
        None => Ok(Value::Null),
        Some(read) => read.map_err(|error| yaml_as_go(&error)),
    }
}

/// Parses the first YAML document, and returns its repeated keys with their lines, as Go reports them.
pub(crate) fn read_yaml_with_duplicates(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let value = read_yaml(body)?;
    if body.trim_ascii_start().starts_with(b"{") {
        return Ok((value, Vec::new()));
    }
    let candidates = lines::repeated(&String::from_utf8_lossy(body));
    if candidates.is_empty() {
        return Ok((value, Vec::new()));
    }
    // The lines are a heuristic; only keys that the parser reports as repeated are returned.
    let (mut duplicates, mut place) = (Vec::new(), String::new());
    let reader = serde_yaml::Deserializer::from_slice(body).next();
    let read = reader.map(|reader| Noting { duplicates: &mut duplicates, place: &mut place }.deserialize(reader));
    let is_seen = |key: &str| duplicates.iter().any(|place| place.ends_with(key));
    let repeated = candidates.iter().filter(|(_, key)| read.is_some() && is_seen(key));
    Ok((value, repeated.map(|(line, key)| format!("line {line}: key {key:?} already set in map")).collect()))
}

/// Returns the message of Go's parser for an error of this one.
fn to_go_error(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let position: usize = body
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum::<usize>()
        + error.column().saturating_sub(1);
    let found = match body.get(position) {
        Some(byte) if !byte.is_ascii() => format!("\\u{byte:04x}"),
        Some(byte) => char::from(*byte).to_string(),
        None => " ".to_owned(),
    };
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return match first_too_deep(body) {
            Some(bracket) => format!("invalid character '{bracket}' exceeded max depth"),
            // This parser allows less nesting than Go's.
            None => "unexpected end of JSON input".to_owned(),
        };
    }
    let place = if text.starts_with("trailing characters") {
        "after top-level value"
    } else if text.starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else if text.contains("`,` or `}`") {
        "after object key:value pair"
    } else if text.contains("`,` or `]`") {
        "after array element"
    } else if text.contains("expected `:`") {
        "after object key"
    } else {
        "looking for beginning of value"
    };
    format!("invalid character '{found}' {place}")
}

/// Nesting limit of Go's parser.
const GO_DEPTH_MAX: usize = 10_000;

/// Returns the position of the bracket that exceeds the nesting limit.
fn first_too_deep(body: &[u8]) -> Option<char> {
    let mut depth = 0_usize;
    body.iter().find_map(|byte| match byte {
        b'[' | b'{' => {
            depth += 1;
            (depth > GO_DEPTH_MAX).then(|| char::from(*byte))
        }
        b']' | b'}' => {
            depth = depth.saturating_sub(1);
            None
        }
        _ => None,
    })
}

/// Returns the message of Go's parser. It counts lines from 0 for syntax errors and from 1 for lexical ones, reports the
/// start of the broken construct, and leaves out a line 0.
fn yaml_as_go(error: &serde_yaml::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line").next().unwrap_or_default();
    let found = error.location().map_or(1, |place| place.line());
    let begins = text.rsplit_once(" at line ").filter(|(before, _)| before.contains(", while"));
    let begins = begins.and_then(|(_, place)| place.split(' ').next()).and_then(|line| line.parse::<usize>().ok());
    let from_zero = usize::from(what.starts_with("did not find expected"));
    let line =
        [begins.unwrap_or(found), found].into_iter().map(|line| line - from_zero.min(line)).find(|line| *line > 0);
    match line {
        Some(line) => format!("yaml: line {line}: {what}"),
        None => format!("yaml: {what}"),
    }
}

struct Noting<'a> {
    duplicates: &'a mut Vec<String>,
    place: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for Noting<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Noting<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let before = self.place.len();
            self.place.push_str(&format!("[{}]", list.len()));
            let next =
                elements.next_element_seed(Noting { duplicates: &mut *self.duplicates, place: &mut *self.place })?;
            self.place.truncate(before);
            match next {
                Some(element) => list.push(element),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let before = self.place.len();
            if before > 0 {
                self.place.push('.');
            }
            self.place.push_str(&name);
            if map.contains_key(&name) {
                self.duplicates.push(self.place.clone());
            }
            let value =
                fields.next_value_seed(Noting { duplicates: &mut *self.duplicates, place: &mut *self.place })?;
            self.place.truncate(before);
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_are_read() {
        assert_eq!(read_yaml(b"a: 1\nb: [x]\n"), Ok(json!({"a": 1, "b": ["x"]})));
        assert_eq!(read_yaml(br#"{"a": 1}"#), Ok(json!({"a": 1})));
        assert_eq!(read_yaml(b"a: 1\n---\na: 2\n"), Ok(json!({"a": 1})));
        assert!(read_yaml(b"a: [").is_err());
        assert!(read_json(b"a: 1").is_err());
    }

    #[test]
    fn a_repeated_key_is_reported_with_its_line() {
        let read =
            read_yaml_with_duplicates(b"data:\n  a: b\n  c: |\n    a: 1\n    a: 2\n  a: c\nlist:\n- a: 1\n- a: 2\n");
        let expected = json!({"data": {"a": "c", "c": "a: 1\na: 2\n"}, "list": [{"a": 1}, {"a": 2}]});
        assert_eq!(read, Ok((expected, vec!["line 6: key \"a\" already set in map".to_owned()])));
        assert_eq!(read_yaml_with_duplicates(b"{a: 1, b: 2}"), Ok((json!({"a": 1, "b": 2}), Vec::new())));
    }

    #[test]
    fn a_repeated_field_is_reported_and_its_last_value_is_used() {
        let read = read_json_with_duplicates(br#"{"a": [{"b": 1, "b": 2}], "c": null, "d": 1.5}"#);
        assert_eq!(read, Ok((json!({"a": [{"b": 2}], "c": null, "d": 1.5}), vec!["a[0].b".to_owned()])));
    }

    #[test]
    fn errors_have_the_messages_of_go() {
        for (body, expected) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\":", "unexpected end of JSON input"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("a: 1", "invalid character 'a' looking for beginning of value"),
        ] {
            assert_eq!(read_json_with_duplicates(body.as_bytes()), Err(expected.to_owned()), "{body}");
        }
    }
}
