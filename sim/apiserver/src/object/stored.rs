//! A stored object, with its labels and its JSON text, which lists and watches use.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::object::fields::value_at;

/// An immutable object. Copies of the store share it together with its labels and its text.
#[derive(Debug)]
pub(crate) struct Stored {
    object: Arc<Value>,
    labels: Box<[(String, String)]>,
    /// Serialized on first use.
    text: OnceLock<Text>,
}

/// An object in JSON, and the ranges of some of its fields.
#[derive(Debug)]
pub(crate) struct Text {
    json: Bytes,
    /// Ranges of `apiVersion` and `kind`, each with the comma that follows.
    of_type: Vec<Range<usize>>,
    /// Range of the value of `metadata`.
    metadata: Range<usize>,
}

impl Stored {
    pub(crate) fn new(object: Value) -> Self {
        let labels = value_at(&object, "/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        Self { object: Arc::new(object), labels, text: OnceLock::new() }
    }

    /// Returns the object alone.
    pub(crate) fn object(&self) -> Arc<Value> {
        self.object.clone()
    }

    /// Returns the value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &Text {
        self.text.get_or_init(|| Text::write(&self.object))
    }

    /// Returns its text, if it was serialized already.
    pub(crate) fn written(&self) -> Option<&Text> {
        self.text.get()
    }
}

impl Deref for Stored {
    type Target = Arc<Value>;

    fn deref(&self) -> &Arc<Value> {
        &self.object
    }
}

impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl Text {
    /// Serializes an object.
    pub(crate) fn write(object: &Value) -> Self {
        let mut json = Vec::new();
        let (mut of_type, mut metadata): (Vec<Range<usize>>, _) = (Vec::new(), 0..0);
        json.push(b'{');
        for (index, (name, value)) in object.as_object().into_iter().flatten().enumerate() {
            if index > 0 {
                json.push(b',');
            }
            let begin = json.len();
            append(&mut json, name);
            json.push(b':');
            let value_begin = json.len();
            append(&mut json, value);
            match name.as_str() {
                // A comma follows: every object has metadata, and fields are sorted by name.
                "apiVersion" | "kind" => of_type.push(begin..json.len() + 1),
                "metadata" => metadata = value_begin..json.len(),
                _ => {}
            }
        }
        json.push(b'}');
        Self { json: json.into_boxed_slice().into(), of_type, metadata }
    }

    /// Returns the whole object.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// Returns the value of its metadata.
    pub(crate) fn metadata(&self) -> &[u8] {
        &self.json[self.metadata.clone()]
    }

    /// Appends the object without `apiVersion` and `kind`.
    pub(crate) fn append_untyped(&self, to: &mut Vec<u8>) {
        let mut begin = 0;
        for field in &self.of_type {
            to.extend_from_slice(&self.json[begin..field.start]);
            begin = field.end;
        }
        to.extend_from_slice(&self.json[begin..]);
    }
}

/// Appends a value in JSON.
pub(crate) fn append(to: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(to, value).expect("texts and values can always be written");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ranges_of_the_text_match_the_object() {
        let object = json!({
            "addressType": "IPv4", "apiVersion": "v1", "data": {"a,\"": [1, null]}, "kind": "K",
            "metadata": {"labels": {"x": "y"}, "name": "n"}, "spec": {},
        });
        let stored = Stored::new(object.clone());
        assert!(stored.written().is_none());
        assert_eq!(stored.text().json(), object.to_string().as_bytes());
        assert_eq!(stored.text().metadata(), object["metadata"].to_string().as_bytes());
        assert!(stored.written().is_some());
        let mut untyped = Vec::new();
        stored.text().append_untyped(&mut untyped);
        let mut expected = object;
        expected.as_object_mut().expect("a map").retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
        assert_eq!(untyped, expected.to_string().into_bytes());
        assert_eq!((stored.label("x"), stored.label("y")), (Some("y"), None));
    }
}
