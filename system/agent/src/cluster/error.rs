//! Failure of one request to the Kubernetes API, and the decision to retry it.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use sindri_model::ObjectKey;
use thiserror::Error;

/// Longer messages of a server are cut.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Number of fields that are named.
const FIELDS_MAX: usize = 10;
/// Characters of one field path.
const FIELD_CHARS_MAX: usize = 200;

/// Parts of messages of the server that reject the change of an immutable field.
const UNCHANGEABLE: [&str; 3] =
    ["immutable", "may not change once set", "updates to statefulset spec for fields other than"];
/// Advice that is added to such a message.
const REPLACE_HINT: &str =
    "this cannot be changed in place; with the annotation brokkr.io/replace: \"true\" the object is replaced";

/// Start of the server's message about an applied object with a field of the wrong type.
const MISTYPED: &str = "failed to create typed patch object";
/// Part of the server's message about an object that a webhook must review, and that could not be called.
const FAILED_WEBHOOK: &str = "failed calling webhook";
/// Parts of the server's messages about objects whose namespace or CRD is being deleted.
const TERMINATING_NAMESPACE: &str = "because it is being terminated";
const TERMINATING_CRD: &str = "custom resource definition is terminating";

/// Operation that failed: its description, and the object that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedOperation {
    text: Box<str>,
    key: Option<Box<ObjectKey>>,
}

impl FailedOperation {
    /// Returns the operation of a verb on an object.
    pub fn on_object(verb: &str, key: &ObjectKey) -> Self {
        Self { text: format!("{verb} {key}").into(), key: Some(Box::new(key.clone())) }
    }
}

impl From<String> for FailedOperation {
    fn from(text: String) -> Self {
        Self { text: text.into(), key: None }
    }
}

impl From<&str> for FailedOperation {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for FailedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Failure of one request. Each variant displays as one sentence that names the object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClusterError {
    /// No complete response arrived; a write may or may not have happened.
    #[error("{operation}: the API server cannot be reached: {cause}{}", describe_attempts(*.attempts))]
    Unreachable {
        /// Attempted operation, with the object named.
        operation: FailedOperation,
        /// Network failure.
        cause: String,
        /// Number of attempts, once retries were given up.
        attempts: u32,
    },
    /// The server returned an error status.
    #[error("{operation}: {status} {reason}: {message}{}", describe_attempts(*.attempts))]
    Refused {
        /// Attempted operation, with the object named.
        operation: FailedOperation,
        /// HTTP status.
        status: u16,
        /// True if the response is a `Status`. The page of a proxy may repeat the request.
        is_status: bool,
        /// Reason, such as `Invalid`.
        reason: Box<str>,
        /// Message of the server.
        message: String,
        /// Paths of the fields that the server names.
        fields: Box<[String]>,
        /// Name of the object that the response is about, if it is a `Status` that names one.
        about: Option<Box<str>>,
        /// Value of `Retry-After`.
        retry_after: Option<Duration>,
        /// Number of attempts, once retries were given up.
        attempts: u32,
    },
    /// The agent is shutting down and sends no further requests.
    #[error("{operation}: not sent, because the agent is shutting down")]
    ShuttingDown {
        /// Operation that was not attempted.
        operation: FailedOperation,
    },
    /// Nothing may be deleted, because the broker has not responded since the start of the agent.
    #[error("{operation}: not sent, because the broker has not responded since the start of the agent")]
    DeleteWithheld {
        /// Operation that was not attempted.
        operation: FailedOperation,
    },
    /// The response is not what the request asks for.
    #[error("{operation}: the response cannot be read: {cause}")]
    Malformed {
        /// Attempted operation, with the object named.
        operation: FailedOperation,
        /// Defect of the response.
        cause: String,
    },
    /// A kind is not served, and nothing proves that its objects are gone.
    #[error("{operation}: {cause}")]
    NotServed {
        /// Attempted operation, with the kind named.
        operation: FailedOperation,
        /// Reason, with advice.
        cause: String,
    },
    /// The agent itself has a fault.
    #[error("{operation}: {cause}")]
    Internal {
        /// Attempted operation, with the object named.
        operation: FailedOperation,
        /// Message of the panic.
        cause: String,
    },
}

/// Permission to retry a transient failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Minimum wait that the server asked for.
    pub after: Option<Duration>,
}

fn describe_attempts(attempts: u32) -> String {
    if attempts == 0 { String::new() } else { format!(" (given up after {attempts} attempts)") }
}

impl ClusterError {
    /// Reads the error from the status and body of a response.
    pub(super) fn from_response(
        operation: FailedOperation,
        status: u16,
        retry_after: Option<Duration>,
        body: &[u8],
    ) -> Self {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |field: &str| document[field].as_str().filter(|text| !text.is_empty());
        let reason = text("reason").map_or_else(|| canonical_reason(status), str::to_owned);
        let message: String = match text("message") {
            Some(message) => message.chars().take(MESSAGE_CHARS_MAX).collect(),
            None => String::from_utf8_lossy(body).trim().chars().take(MESSAGE_CHARS_MAX).collect(),
        };
        let is_immutable = status == 422 && UNCHANGEABLE.iter().any(|words| message.contains(words));
        let fields = named_fields(&document);
        let is_status = document["kind"] == "Status";
        let details = Some(&document["details"]["name"]).filter(|_| is_status);
        let about = details.and_then(Value::as_str).map(Box::from);
        let refused = Self::Refused {
            operation,
            is_status,
            status,
            reason: reason.into(),
            message,
            fields: fields.into(),
            about,
            retry_after,
            attempts: 0,
        };
        if is_immutable { refused.with_hint(REPLACE_HINT) } else { refused }
    }

    /// Returns the object that the failed operation concerns, if it concerns one.
    pub fn object(&self) -> Option<&ObjectKey> {
        let (Self::Unreachable { operation, .. }
        | Self::Refused { operation, .. }
        | Self::ShuttingDown { operation }
        | Self::DeleteWithheld { operation }
        | Self::Malformed { operation, .. }
        | Self::NotServed { operation, .. }
        | Self::Internal { operation, .. }) = self;
        operation.key.as_deref()
    }

    /// Adds advice to the message; replaces the advice to replace the object.
    #[must_use]
    pub fn with_hint(mut self, hint: &str) -> Self {
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

    /// Returns a value if the request may be retried. The only place that decides this from status codes.
    pub fn retry(&self) -> Option<Retry> {
        match self {
            Self::Unreachable { .. } => Some(Retry { after: None }),
            // Server-side apply returns 500 for a field of the wrong type; a retry would fail the same way.
            Self::Refused { status: 500, message, .. } if message.starts_with(MISTYPED) => None,
            Self::Refused { status: 429 | 500 | 503 | 504, retry_after, .. } => Some(Retry { after: *retry_after }),
            Self::Refused { .. } | Self::Malformed { .. } | Self::NotServed { .. } => None,
            Self::ShuttingDown { .. } | Self::DeleteWithheld { .. } | Self::Internal { .. } => None,
        }
    }

    /// Returns true if the error says nothing about the object, because the server did not process the request.
    pub fn is_inconclusive(&self) -> bool {
        self.retry().is_some() || matches!(self, Self::ShuttingDown { .. })
    }

    /// Returns true if a webhook that must review the object could not be called.
    pub fn is_failed_webhook(&self) -> bool {
        matches!(self, Self::Refused { status: 500, message, .. } if message.contains(FAILED_WEBHOOK))
    }

    /// Returns true if the object cannot be created because its namespace or its CRD is being deleted.
    pub fn is_about_terminating_parent(&self) -> bool {
        match self {
            Self::Refused { status: 403, message, .. } => message.contains(TERMINATING_NAMESPACE),
            Self::Refused { status: 405, message, .. } => message.contains(TERMINATING_CRD),
            _ => false,
        }
    }

    /// Returns true if the agent itself has a fault.
    pub fn is_internal(&self) -> bool {
        matches!(self, Self::Internal { .. })
    }

    /// Returns true if the server rejected the request: it was not carried out.
    pub fn proves_rejection(&self) -> bool {
        matches!(self, Self::Refused { status: 400..=499, .. }) && !self.is_inconclusive()
    }

    /// Sets the number of attempts after which retries were given up.
    pub(super) fn with_attempts(mut self, count: u32) -> Self {
        match &mut self {
            Self::Unreachable { attempts, .. } | Self::Refused { attempts, .. } => *attempts = count,
            Self::Malformed { .. } | Self::NotServed { .. } | Self::ShuttingDown { .. } => {}
            Self::DeleteWithheld { .. } | Self::Internal { .. } => {}
        }
        self
    }

    /// Replaces the message of the server, which may quote the content of a Secret.
    pub(super) fn without_content(mut self) -> Self {
        if let Self::Refused { message, fields, status, is_status, .. } = &mut self
            && (!*is_status || is_about_content(*status, message))
        {
            let hint = message.find(REPLACE_HINT).map(|_| format!("; {REPLACE_HINT}")).unwrap_or_default();
            let fields = if fields.is_empty() { String::new() } else { format!(" in {}", fields.join(", ")) };
            let failing = match status {
                500 if message.starts_with(MISTYPED) => MISTYPED,
                500 if message.contains(FAILED_WEBHOOK) => FAILED_WEBHOOK,
                500.. => "the server could not process it",
                401 | 403 | 404 | 429 => "it was denied",
                _ => "the object is not valid",
            };
            *message = format!("{failing}{fields} (its content is not shown){hint}");
        }
        self
    }

    /// Returns true if the server rejects the object as invalid.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Refused { status: 422, .. })
    }

    /// Returns the HTTP status, if the server sent one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Unreachable { .. } | Self::Malformed { .. } | Self::ShuttingDown { .. } => None,
            Self::NotServed { .. } | Self::DeleteWithheld { .. } | Self::Internal { .. } => None,
        }
    }

    /// Returns true if a kind is not served, and nothing proves that its objects are gone.
    pub fn is_not_served(&self) -> bool {
        matches!(self, Self::NotServed { .. })
    }

    /// Returns true if the status is 404: the object, its resource type, or the path at a proxy does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Returns true if the API server itself responded that the object of this name does not exist. A type that is not
    /// served, or a proxy, also responds 404, and proves nothing about the object.
    pub fn proves_absence(&self, name: &str) -> bool {
        matches!(self, Self::Refused { status: 404, about: Some(about), .. } if **about == *name)
    }

    /// Returns true for a 404 that names no object: the server does not know the path, so that the type may be served differently.
    pub fn is_path_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, about: None, .. })
    }

    /// Returns true if the agent lacks the permission.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { status: 403, .. })
    }

    /// Returns true if the requested resourceVersion is too old (410): the watch must list again.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Refused { status: 410, .. })
    }

    /// Returns true if a precondition failed or the object was changed concurrently.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }
}

/// Returns true if a message may quote the object. The API server's own reasons for 401, 403, 404 and 429 do not.
fn is_about_content(status: u16, message: &str) -> bool {
    let is_by_admission = message.contains("admission webhook") || message.contains("ValidatingAdmissionPolicy");
    is_by_admission || !matches!(status, 401 | 403 | 404 | 429)
}

/// Returns the paths of the fields in `details.causes`. A path contains no values.
fn named_fields(document: &Value) -> Vec<String> {
    let causes = document["details"]["causes"].as_array().into_iter().flatten();
    let named = causes.filter_map(|cause| cause["field"].as_str().filter(|field| !field.is_empty()));
    named.take(FIELDS_MAX).map(|field| field.chars().take(FIELD_CHARS_MAX).collect()).collect()
}

fn canonical_reason(status: u16) -> String {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, message: &str) -> ClusterError {
        let body = serde_json::json!({"kind": "Status", "message": message}).to_string();
        ClusterError::from_response("apply ConfigMap shop/a".into(), status, None, body.as_bytes())
    }

    #[test]
    fn only_transient_failures_are_retried() {
        for status in [429, 500, 503, 504] {
            assert!(refused(status, "busy").retry().is_some(), "{status}");
        }
        for status in [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 501, 502] {
            assert!(refused(status, "no").retry().is_none(), "{status}");
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_is_permanent_although_the_status_is_500() {
        let mistyped = "failed to create typed patch object (shop/a; /v1, Kind=ConfigMap): .data.x: expected string";
        assert_eq!(refused(500, mistyped).retry(), None);
    }

    #[test]
    fn an_object_in_a_terminating_namespace_or_of_a_terminating_crd_is_not_invalid() {
        let inside = "configmaps \"a\" is forbidden: unable to create new content in namespace shop because it is being terminated";
        let kind = "create not allowed while custom resource definition is terminating";
        assert!(refused(403, inside).is_about_terminating_parent() && refused(405, kind).is_about_terminating_parent());
        assert!(!refused(403, "configmaps \"a\" is forbidden").is_about_terminating_parent());
    }

    #[test]
    fn only_a_status_that_names_the_object_proves_its_absence() {
        let status = |kind: &str, name: &str| {
            let body = serde_json::json!({"kind": kind, "code": 404, "details": {"name": name, "kind": "configmaps"}});
            ClusterError::from_response("read ConfigMap shop/a".into(), 404, None, body.to_string().as_bytes())
        };
        assert!(status("Status", "a").proves_absence("a"));
        assert!(!status("Status", "shop").proves_absence("a"), "the namespace is missing");
        assert!(!status("Error", "a").proves_absence("a"));
        let page = ClusterError::from_response("read ConfigMap shop/a".into(), 404, None, b"404 page not found");
        assert!(page.is_not_found() && !page.proves_absence("a"));
    }

    #[test]
    fn a_change_of_an_immutable_field_is_reported_with_the_field_and_advice() {
        let body = serde_json::json!({
            "message": "Secret \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
            "details": {"causes": [{"field": "data"}]},
        });
        let refused = ClusterError::from_response("apply Secret shop/a".into(), 422, None, body.to_string().as_bytes());
        let text = refused.clone().without_content().to_string();
        assert!(text.contains("not valid in data (its content is not shown); this cannot be changed"), "{text}");
        assert!(refused.to_string().ends_with("the object is replaced"), "{refused}");
        let other = refused.with_hint("it is not replaced").to_string();
        assert!(other.ends_with("is set; it is not replaced"), "{other}");
    }

    #[test]
    fn the_content_of_a_secret_is_not_shown() {
        for status in [400, 422, 500] {
            assert!(!refused(status, "Invalid value: hunter2").without_content().to_string().contains("hunter2"));
        }
        let mistyped = refused(500, &format!("{MISTYPED}: expected map, got hunter2")).without_content();
        assert!(mistyped.retry().is_none() && !mistyped.to_string().contains("hunter2"), "{mistyped}");
        let denied = refused(403, "admission webhook \"a\" denied the request: hunter2").without_content();
        assert!(!denied.to_string().contains("hunter2"), "{denied}");
        let page = ClusterError::from_response("apply Secret shop/a".into(), 403, None, b"<p>blocked: hunter2</p>");
        assert!(!page.without_content().to_string().contains("hunter2"), "the page of a proxy");
        let rbac = refused(403, "secrets \"a\" is forbidden: User \"b\" cannot patch").without_content();
        assert!(rbac.to_string().contains("cannot patch"), "{rbac}");
        let busy = refused(503, "failed calling webhook with hunter2").without_content();
        assert!(busy.retry().is_some() && !busy.to_string().contains("hunter2"), "{busy}");
        let down = refused(500, "failed calling webhook with hunter2").without_content();
        assert!(down.is_failed_webhook(), "{down}");
        assert!(down.retry().is_some() && !down.to_string().contains("not valid"), "{down}");
    }
}
