//! Lenient view of a live object: a field of an unexpected type counts as missing.

use serde_json::Value;

/// A view of a live object.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a>(pub &'a Value);

impl<'a> Object<'a> {
    /// Returns the value at a path; `None` if it is missing or null.
    pub fn at(self, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.0, |value, field| value.get(field)).filter(|value| !value.is_null())
    }

    pub fn text(self, path: &[&str]) -> Option<&'a str> {
        self.at(path)?.as_str()
    }

    pub fn flag(self, path: &[&str]) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn number(self, path: &[&str]) -> Option<i64> {
        self.at(path)?.as_i64()
    }

    /// Returns a number that defaults to zero, as the counts of a status do.
    pub fn count(self, path: &[&str]) -> i64 {
        self.number(path).unwrap_or(0)
    }

    /// Returns the elements of a list; empty if there is no list.
    pub fn list(self, path: &[&str]) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub fn kind(self) -> &'a str {
        self.text(&["kind"]).unwrap_or_default()
    }

    /// Returns the group of `apiVersion`; empty for the core group.
    pub fn group(self) -> &'a str {
        let version = self.text(&["apiVersion"]).unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group)
    }

    pub fn name(self) -> &'a str {
        self.text(&["metadata", "name"]).unwrap_or_default()
    }

    pub fn namespace(self) -> Option<&'a str> {
        self.text(&["metadata", "namespace"]).filter(|namespace| !namespace.is_empty())
    }

    pub fn is_being_deleted(self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    pub fn annotation(self, name: &str) -> Option<&'a str> {
        self.text(&["metadata", "annotations", name])
    }

    /// Returns true if the status is not empty.
    pub fn has_status(self) -> bool {
        self.at(&["status"]).and_then(Value::as_object).is_some_and(|status| !status.is_empty())
    }
}
