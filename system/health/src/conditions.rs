//! Conditions of an object's status.

use serde_json::Value;

use crate::health::{Health, HealthState};
use crate::object::Object;

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    pub name: &'a str,
    pub status: ConditionStatus,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionStatus {
    True,
    False,
    /// `Unknown`, or an invalid value.
    Unknown,
}

impl<'a> Condition<'a> {
    /// Reads a condition; `None` if it has no type.
    pub fn read(value: &'a Value) -> Option<Self> {
        let object = Object(value);
        let status = match object.text(&["status"]) {
            Some("True") => ConditionStatus::True,
            Some("False") => ConditionStatus::False,
            Some(_) | None => ConditionStatus::Unknown,
        };
        let reason = object.text(&["reason"]).unwrap_or_default();
        let message = object.text(&["message"]).unwrap_or_default();
        Some(Self { name: object.text(&["type"])?, status, reason, message })
    }

    pub fn is_true(self) -> bool {
        self.status == ConditionStatus::True
    }

    pub fn is_false(self) -> bool {
        self.status == ConditionStatus::False
    }

    /// Returns the condition's reason and message as the health of its object.
    pub fn to_health(self, state: HealthState, default_reason: &str) -> Health {
        let reason = if crate::health::is_valid_reason(self.reason) { self.reason } else { default_reason };
        let message = if self.message.trim().is_empty() {
            let status = match self.status {
                ConditionStatus::True => "True",
                ConditionStatus::False => "False",
                ConditionStatus::Unknown => "Unknown",
            };
            format!("the condition {} is {status}", self.name)
        } else {
            self.message.to_owned()
        };
        Health::new(state, reason, message)
    }
}

/// Conditions of an object.
pub(crate) trait Conditions<'a>: Copy {
    /// Returns the conditions of the status.
    fn conditions(self) -> impl Iterator<Item = Condition<'a>>;

    /// Returns the condition of this type.
    fn condition(self, name: &str) -> Option<Condition<'a>> {
        self.conditions().find(|condition| condition.name == name)
    }
}

impl<'a> Conditions<'a> for Object<'a> {
    fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.list(&["status", "conditions"]).iter().filter_map(Condition::read)
    }
}
