//! Conditions of an object's status.

use serde_json::Value;

use crate::health::{Health, HealthState};
use crate::object::Object;

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    pub name: &'a str,
    pub truth: ConditionTruth,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionTruth {
    True,
    False,
    /// `Unknown`, or an invalid value.
    Unknown,
}

impl<'a> Condition<'a> {
    /// Reads a condition; `None` if it has no type.
    pub fn read(value: &'a Value) -> Option<Self> {
        let object = Object(value);
        let truth = match object.text(&["status"]) {
            Some("True") => ConditionTruth::True,
            Some("False") => ConditionTruth::False,
            Some(_) | None => ConditionTruth::Unknown,
        };
        let reason = object.text(&["reason"]).unwrap_or_default();
        let message = object.text(&["message"]).unwrap_or_default();
        Some(Self { name: object.text(&["type"])?, truth, reason, message })
    }

    pub fn is_true(self) -> bool {
        self.truth == ConditionTruth::True
    }

    pub fn is_false(self) -> bool {
        self.truth == ConditionTruth::False
    }

    /// Returns the condition's reason and message as the health of its object.
    pub fn to_health(self, state: HealthState, or_reason: &str) -> Health {
        let reason = if crate::health::is_valid_reason(self.reason) { self.reason } else { or_reason };
        let message = if self.message.trim().is_empty() {
            let truth = match self.truth {
                ConditionTruth::True => "True",
                ConditionTruth::False => "False",
                ConditionTruth::Unknown => "Unknown",
            };
            format!("the condition {} is {truth}", self.name)
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
