//! API errors, with the messages of the real server.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::webhook_call::WebhookCall;
use crate::object::field_error::FieldError;
use crate::object::fields::string_at;
use crate::registry::resource::Resource;

/// A failed request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApiError {
    /// A `Status` object.
    Status(Box<Status>),
    /// No such path; the real server reports it in plain text.
    NoSuchPath,
    /// The real server panics on such a request: the connection ends without a response.
    Lost,
    /// No failure: the request cannot be decided before these webhooks have answered.
    AwaitsWebhooks(Vec<WebhookCall>),
}

/// The content of a `Status` object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    pub(super) code: u16,
    reason: Cow<'static, str>,
    message: String,
    pub(super) details: Option<Value>,
    metadata: Value,
    /// Warnings that the response carries besides the error.
    pub(super) warnings: Vec<String>,
}

impl ApiError {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>, details: Option<Value>) -> Self {
        Self::Status(Box::new(Status {
            code,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            details,
            metadata: json!({}),
            warnings: Vec::new(),
        }))
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        Self::new(404, "NotFound", message, Some(details(name, &resource.group, &resource.plural)))
    }

    pub(crate) fn namespace_not_found(name: &str) -> Self {
        let message = format!("namespaces {name:?} not found");
        Self::new(404, "NotFound", message, Some(details(name, "", "namespaces")))
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str, deleting: bool) -> Self {
        let prefix = if deleting { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} {name:?} already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message, Some(details(name, &resource.group, &resource.plural)))
    }

    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        let reason = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, reason)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, reason: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {reason}", resource.qualified());
        Self::new(409, "Conflict", message, Some(details(name, &resource.group, &resource.plural)))
    }

    /// Failed precondition of a delete, which the real server reports with the kind instead of the resource.
    pub(crate) fn precondition(resource: &Resource, name: &str, reason: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {reason}", resource.qualified_kind());
        Self::new(409, "Conflict", message, Some(details(name, &resource.group, &resource.kind)))
    }

    pub(crate) fn apply_conflicts(conflicts: &sindri_merge::Conflicts) -> Self {
        let causes: Vec<Value> = conflicts
            .0
            .iter()
            .map(|conflict| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {}", conflict.owner()),
                    "field": conflict.field(),
                })
            })
            .collect();
        Self::new(409, "Conflict", conflicts.to_string(), Some(json!({ "causes": causes })))
    }

    pub(crate) fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_kind(&resource.group, &resource.kind, name, errors)
    }

    pub(crate) fn invalid_kind(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        // A repeated error appears once in the message, but in each of its causes.
        let mut texts: Vec<String> = Vec::new();
        for text in errors.iter().map(FieldError::full) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut details = details(name, group, kind);
        details["causes"] = errors
            .iter()
            .map(|error| json!({"reason": error.reason, "message": error.message, "field": error.field}))
            .collect();
        Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {text}"), Some(details))
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, reason: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {reason}", resource.qualified());
        Self::new(403, "Forbidden", message, Some(details(name, &resource.group, &resource.plural)))
    }

    pub(crate) fn namespace_terminating(resource: &Resource, name: &str, namespace: &str) -> Self {
        let reason = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let message = format!("{} {name:?} is forbidden: {reason}", resource.qualified());
        let mut details = details(name, &resource.group, &resource.plural);
        details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]);
        Self::new(403, "Forbidden", message, Some(details))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message, None)
    }

    /// An error that the real server does not classify: 500 without a reason.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message, None)
    }

    /// A version or a resource that a served group does not have.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource", Some(json!({})))
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message, Some(json!({})))
    }

    /// Method not allowed on a custom resource, whose message names the verb and the resource.
    pub(crate) fn custom_method_not_allowed(resource: &Resource, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", resource.qualified());
        Self::new(405, "MethodNotAllowed", message, Some(details("", &resource.group, &resource.plural)))
    }

    /// A patch with an unsupported content type.
    pub(crate) fn unsupported_patch() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type", Some(json!({})))
    }

    /// A patch whose result is invalid.
    pub(crate) fn invalid_patch(shown: &str, reason: &str) -> Self {
        Self::invalid_kind("", "", "", &[FieldError::invalid("patch", &json!(shown), reason)])
    }

    pub(crate) fn unsupported_media(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message, None)
    }

    /// No clause of the Accept header names a supported media type.
    pub(crate) fn not_acceptable(available: &[&str]) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Self::new(406, "NotAcceptable", message, Some(json!({})))
    }

    /// A supported media type that this resource is not available in.
    pub(crate) fn not_convertible(available: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", available.join(", "));
        Self::new(406, "NotAcceptable", message, None)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message, None)
    }

    /// A resourceVersion that the server has not reached.
    pub(crate) fn version_too_large(requested: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
        let causes = json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
        Self::new(504, "Timeout", message, Some(json!({"causes": causes, "retryAfterSeconds": 1})))
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message, None)
    }

    /// An expired continue token, with a new one that continues at the current revision.
    pub(crate) fn expired_with_continue(message: &str, token: String) -> Self {
        let metadata = json!({ "continue": token });
        Self::Status(Box::new(Status {
            code: 410,
            reason: Cow::Borrowed("Expired"),
            message: message.to_owned(),
            details: None,
            metadata,
            warnings: Vec::new(),
        }))
    }

    /// An error of the server itself.
    pub(crate) fn internal(reason: &str) -> Self {
        let details = json!({"causes": [{ "message": reason }]});
        Self::new(500, "InternalError", format!("Internal error occurred: {reason}"), Some(details))
    }

    /// The `Status` with which a webhook denied a request.
    pub(crate) fn from_status(status: &Value) -> Self {
        let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        Self::Status(Box::new(Status {
            code: code.unwrap_or(400),
            reason: Cow::Owned(string_at(status, "/reason").to_owned()),
            message: string_at(status, "/message").to_owned(),
            details: status.get("details").filter(|details| details.is_object()).cloned(),
            metadata: status
                .get("metadata")
                .filter(|metadata| metadata.is_object())
                .cloned()
                .unwrap_or_else(|| json!({})),
            warnings: Vec::new(),
        }))
    }

    /// Returns the same error with warnings before its own.
    pub(crate) fn with_warnings(mut self, warnings: &[String]) -> Self {
        if let Self::Status(status) = &mut self {
            status.warnings.splice(0..0, warnings.iter().cloned());
        }
        self
    }

    pub(crate) fn to_value(&self) -> Value {
        let Self::Status(status) = self else {
            return Value::Null;
        };
        let mut object = Map::new();
        object.insert("kind".to_owned(), json!("Status"));
        object.insert("apiVersion".to_owned(), json!("v1"));
        object.insert("metadata".to_owned(), status.metadata.clone());
        object.insert("status".to_owned(), json!("Failure"));
        object.insert("message".to_owned(), json!(status.message));
        if !status.reason.is_empty() {
            object.insert("reason".to_owned(), json!(status.reason));
        }
        if let Some(details) = &status.details {
            object.insert("details".to_owned(), details.clone());
        }
        object.insert("code".to_owned(), json!(status.code));
        Value::Object(object)
    }
}

/// Returns the details of a `Status`. Empty fields are left out, as Go does.
pub(crate) fn details(name: &str, group: &str, kind: &str) -> Value {
    let parts = [("name", name), ("group", group), ("kind", kind)];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(parts.map(|(part, text)| (part.to_owned(), json!(text))).collect())
}
