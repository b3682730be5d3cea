//! A live object as one reads it: fields that may be missing or of the wrong type, which are then the same as missing.

use serde_json::Value;

use crate::conditions::Condition;

/// A view of a live object.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a>(pub &'a Value);

impl<'a> Object<'a> {
    /// The value below these fields.
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

    /// A number that is left out when it is zero, as the counts of a status are.
    pub fn count(self, path: &[&str]) -> i64 {
        self.number(path).unwrap_or(0)
    }

    /// The elements of a list; none where there is no list.
    pub fn list(self, path: &[&str]) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub fn kind(self) -> &'a str {
        self.text(&["kind"]).unwrap_or_default()
    }

    /// The group of its `apiVersion`; empty for the core group.
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

    /// Whether its controller has written anything.
    pub fn has_status(self) -> bool {
        self.at(&["status"]).and_then(Value::as_object).is_some_and(|status| !status.is_empty())
    }

    /// The conditions of its status.
    pub fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.list(&["status", "conditions"]).iter().filter_map(Condition::read)
    }

    pub fn condition(self, name: &str) -> Option<Condition<'a>> {
        self.conditions().find(|condition| condition.name == name)
    }
}
