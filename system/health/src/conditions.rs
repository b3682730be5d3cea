//! The conditions of a status: what a controller says about an object, in its own words.

use serde_json::Value;

use crate::health::{Health, HealthState};
use crate::object::Object;

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    pub name: &'a str,
    pub truth: Truth,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Whether it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    True,
    False,
    /// The controller does not know, or said something that is no truth.
    Unknown,
}

impl<'a> Condition<'a> {
    /// `None` where it has no type.
    pub fn read(value: &'a Value) -> Option<Self> {
        let object = Object(value);
        let truth = match object.text(&["status"]) {
            Some("True") => Truth::True,
            Some("False") => Truth::False,
            Some(_) | None => Truth::Unknown,
        };
        let reason = object.text(&["reason"]).unwrap_or_default();
        let message = object.text(&["message"]).unwrap_or_default();
        Some(Self { name: object.text(&["type"])?, truth, reason, message })
    }

    pub fn is_true(self) -> bool {
        self.truth == Truth::True
    }

    pub fn is_false(self) -> bool {
        self.truth == Truth::False
    }

    /// Its words as an object's; where it has none, that it is so.
    pub fn health(self, state: HealthState, or_reason: &str) -> Health {
        let reason = if crate::health::is_word(self.reason) { self.reason } else { or_reason };
        let message = if self.message.trim().is_empty() {
            let truth = match self.truth {
                Truth::True => "True",
                Truth::False => "False",
                Truth::Unknown => "Unknown",
            };
            format!("the condition {} is {truth}", self.name)
        } else {
            self.message.to_owned()
        };
        Health::new(state, reason, message)
    }
}
