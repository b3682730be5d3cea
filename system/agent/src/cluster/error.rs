//! What can go wrong with one call to the Kubernetes API, and whether trying again can help.

use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

/// Longer texts of a server are cut.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// So many fields are named, each so long at most.
const FIELDS_MAX: usize = 10;
const FIELD_CHARS_MAX: usize = 200;

/// What the server says of a change that it accepts from nobody, and what helps.
const UNCHANGEABLE: [&str; 3] =
    ["immutable", "may not change once set", "updates to statefulset spec for fields other than"];
const REPLACE_HINT: &str =
    "this cannot be changed in place; with the annotation brokkr.io/replace: \"true\" the object is replaced";

/// How the server begins to say that an applied object has fields of the wrong type.
const MISTYPED: &str = "failed to create typed patch object";

/// One call failed. Each form reads as one sentence that names the object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClusterError {
    /// No complete answer arrived; a write may or may not have happened.
    #[error("{operation}: the API server cannot be reached: {cause}{}", after(*.attempts))]
    Unreachable {
        /// What was tried, with the object named.
        operation: String,
        /// What went wrong on the way.
        cause: String,
        /// How often it was tried, once it was given up.
        attempts: u32,
    },
    /// The server answered with an error.
    #[error("{operation}: {status} {reason}: {message}{}", after(*.attempts))]
    Refused {
        /// What was tried, with the object named.
        operation: String,
        /// The HTTP status.
        status: u16,
        /// The server's reason, such as `Invalid`.
        reason: String,
        /// The server's words.
        message: String,
        /// The fields that it names.
        fields: Vec<String>,
        /// What the server asked to wait.
        retry_after: Option<Duration>,
        /// How often it was tried, once it was given up.
        attempts: u32,
    },
    /// The agent ends, and begins nothing any more.
    #[error("{operation}: not begun, because the agent stops")]
    Stopped {
        /// What was not tried.
        operation: String,
    },
    /// The server answered with something that is no answer to the call.
    #[error("{operation}: the answer cannot be read: {cause}")]
    Malformed {
        /// What was tried, with the object named.
        operation: String,
        /// What is wrong with the answer.
        cause: String,
    },
}

/// A failure that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The least that the server asked to wait.
    pub after: Option<Duration>,
}

fn after(attempts: u32) -> String {
    if attempts == 0 { String::new() } else { format!(" (given up after {attempts} attempts)") }
}

impl ClusterError {
    /// Reads the error out of an answer.
    pub(super) fn refused(operation: &str, status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |field: &str| document[field].as_str().filter(|text| !text.is_empty());
        let reason = text("reason").map_or_else(|| canonical(status), str::to_owned);
        let message: String = match text("message") {
            Some(message) => message.chars().take(MESSAGE_CHARS_MAX).collect(),
            None => String::from_utf8_lossy(body).trim().chars().take(MESSAGE_CHARS_MAX).collect(),
        };
        let cannot_change = status == 422 && UNCHANGEABLE.iter().any(|words| message.contains(words));
        let fields = fields(&document);
        let refused = Self::Refused {
            operation: operation.to_owned(),
            status,
            reason,
            message,
            fields,
            retry_after,
            attempts: 0,
        };
        if cannot_change { refused.hinted(REPLACE_HINT) } else { refused }
    }

    /// The same error, with a word on what to do about it.
    #[must_use]
    pub fn hinted(mut self, hint: &str) -> Self {
        if let Self::Refused { message, .. } = &mut self {
            if let Some(earlier) = message.find(REPLACE_HINT) {
                message.truncate(earlier);
            } else {
                message.push_str("; ");
            }
            message.push_str(hint);
        }
        self
    }

    /// Whether, and after what, to try again. Nobody else looks at status codes for that.
    pub fn retry(&self) -> Option<Retry> {
        match self {
            Self::Unreachable { .. } => Some(Retry { after: None }),
            // An object whose fields have the wrong type is a 500 under server-side apply, and stays one.
            Self::Refused { status: 500, message, .. } if message.starts_with(MISTYPED) => None,
            Self::Refused { status: 429 | 500 | 503 | 504, retry_after, .. } => Some(Retry { after: *retry_after }),
            Self::Refused { .. } | Self::Malformed { .. } | Self::Stopped { .. } => None,
        }
    }

    /// Whether it tells nothing about what was asked: there was no answer.
    pub fn is_no_answer(&self) -> bool {
        self.retry().is_some() || matches!(self, Self::Stopped { .. })
    }

    /// The same error, after so many attempts.
    pub(crate) fn given_up(mut self, count: u32) -> Self {
        match &mut self {
            Self::Unreachable { attempts, .. } | Self::Refused { attempts, .. } => *attempts = count,
            Self::Malformed { .. } | Self::Stopped { .. } => {}
        }
        self
    }

    /// Without the server's words, which may quote the content of a Secret.
    pub(super) fn without_content(mut self) -> Self {
        if let Self::Refused { message, fields, status: status @ (400 | 422 | 500), .. } = &mut self {
            let hint = message.find(REPLACE_HINT).map(|_| format!("; {REPLACE_HINT}")).unwrap_or_default();
            let fields = if fields.is_empty() { String::new() } else { format!(" in {}", fields.join(", ")) };
            let failing = match status {
                500 if message.starts_with(MISTYPED) => MISTYPED,
                // A webhook that does not answer, perhaps.
                500 => "the server could not take it",
                _ => "the object is not valid",
            };
            *message = format!("{failing}{fields} (its content is not shown){hint}");
        }
        self
    }

    /// Whether the server finds the object not valid.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Refused { status: 422, .. })
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unreachable { .. } | Self::Malformed { .. } | Self::Stopped { .. } => None,
        }
    }

    /// Whether the object, or the path to it, does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Whether we may not do this.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status: 403, .. })
    }

    /// Whether what was asked for is too old: a watch has to begin anew.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { status: 410, .. })
    }

    /// Whether a precondition or a concurrent change stood against it.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }
}

/// The paths of the fields that a refusal names; a path has no values in it.
fn fields(document: &Value) -> Vec<String> {
    let causes = document["details"]["causes"].as_array().into_iter().flatten();
    let named = causes.filter_map(|cause| cause["field"].as_str().filter(|field| !field.is_empty()));
    named.take(FIELDS_MAX).map(|field| field.chars().take(FIELD_CHARS_MAX).collect()).collect()
}

fn canonical(status: u16) -> String {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, message: &str) -> ClusterError {
        let body = serde_json::json!({"message": message}).to_string();
        ClusterError::refused("apply ConfigMap shop/a", status, None, body.as_bytes())
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for status in [429, 500, 503, 504] {
            assert!(refused(status, "busy").retry().is_some(), "{status}");
        }
        for status in [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 501, 502] {
            assert!(refused(status, "no").retry().is_none(), "{status}");
        }
    }

    #[test]
    fn a_wrong_type_is_permanent_although_the_server_calls_it_an_internal_error() {
        let mistyped = "failed to create typed patch object (shop/a; /v1, Kind=ConfigMap): .data.x: expected string";
        assert_eq!(refused(500, mistyped).retry(), None);
    }

    #[test]
    fn a_change_that_the_server_never_accepts_is_told_with_its_field_and_what_helps() {
        let body = serde_json::json!({
            "message": "Secret \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
            "details": {"causes": [{"field": "data"}]},
        });
        let refused = ClusterError::refused("apply Secret shop/a", 422, None, body.to_string().as_bytes());
        let told = refused.clone().without_content().to_string();
        assert!(told.contains("not valid in data (its content is not shown); this cannot be changed"), "{told}");
        assert!(refused.to_string().ends_with("the object is replaced"), "{refused}");
        let other = refused.hinted("it is not replaced").to_string();
        assert!(other.ends_with("is set; it is not replaced"), "{other}");
    }

    #[test]
    fn the_content_of_a_secret_is_not_shown() {
        for status in [400, 422, 500] {
            assert!(!refused(status, "Invalid value: hunter2").without_content().to_string().contains("hunter2"));
        }
        let mistyped = refused(500, &format!("{MISTYPED}: expected map, got hunter2")).without_content();
        assert!(mistyped.retry().is_none() && !mistyped.to_string().contains("hunter2"), "{mistyped}");
        let down = refused(500, "failed calling webhook with hunter2").without_content();
        assert!(down.retry().is_some() && !down.to_string().contains("not valid"), "{down}");
    }
}
