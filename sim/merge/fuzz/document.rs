//! Documents from bytes: each byte is a choice, so that a small change of the input is a small change of a document.

use serde_json::{Map, Value};

/// Field names and values that have a meaning in schemas, managed fields or patches.
const WORDS: [&str; 40] = [
    "a",
    "b",
    "",
    "name",
    "spec",
    "metadata",
    "labels",
    "finalizers",
    "ownerReferences",
    "uid",
    "managedFields",
    "manager",
    "operation",
    "Apply",
    "Update",
    "fieldsV1",
    "f:spec",
    "f:a",
    "k:{\"name\":\"a\"}",
    "v:\"a\"",
    ".",
    "apiVersion",
    "v1",
    "m",
    "type",
    "object",
    "array",
    "string",
    "properties",
    "items",
    "additionalProperties",
    "default",
    "x-kubernetes-list-type",
    "map",
    "set",
    "atomic",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "$patch",
    "$setElementOrder/a",
];
const DEPTH_MAX: usize = 12;
const ELEMENTS_MAX: u8 = 5;

/// The rest of the input; zeros follow its end.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn document(&mut self) -> Value {
        self.value(0)
    }

    fn word(&mut self) -> String {
        WORDS[usize::from(self.next()) % WORDS.len()].to_owned()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.next() % 8 {
            1 if depth < DEPTH_MAX => (0..self.next() % ELEMENTS_MAX).map(|_| self.value(depth + 1)).collect(),
            2 | 3 | 4 if depth < DEPTH_MAX => {
                let count = self.next() % ELEMENTS_MAX;
                Value::Object((0..count).map(|_| (self.word(), self.value(depth + 1))).collect::<Map<_, _>>())
            }
            5 => Value::from(self.next() % 2 == 0),
            6 => Value::from(i64::from(self.next().cast_signed())),
            7 => Value::from(self.word()),
            _ => Value::Null,
        }
    }
}
