//! Replies of webhooks: decoding and verification, with the errors of the real server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use super::review::REVIEW_GROUP;
use crate::encoding::yaml;
use crate::http::webhook_call::WebhookReply;
use crate::object::fields::{array_at, group_version, string_at};
use crate::registry::types::decode::json_type_name;

/// Verified reply of a webhook.
pub(super) struct Reply {
    pub(super) is_allowed: bool,
    /// JSON patch, not parsed yet; empty if there is none.
    pub(super) patch: Bytes,
    pub(super) patch_type: String,
    /// `Status` that explains a denial.
    pub(super) status: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// Go type into which the kind of a body is decoded.
const KIND_TYPE: &str =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Decodes the body of a reply to a review of this version, as the real server's HTTP client does.
pub(super) fn read(reply: &WebhookReply, version: &str) -> Result<Value, String> {
    if !(200..300).contains(&reply.status) {
        return Err(describe_status(reply.status, &String::from_utf8_lossy(&reply.body)));
    }
    if reply.body.is_empty() {
        let content_type = &reply.content_type;
        return Err(format!("0-length response with status code: {} and content type: {content_type}", reply.status));
    }
    let unreadable = |reason: String| format!("couldn't get version/kind; json parse error: {reason}");
    let review = match serde_json::from_slice(&reply.body) {
        Ok(review) => review,
        // A text that is not JSON is read as YAML.
        Err(_) => yaml::read_yaml(&reply.body).map_err(unreadable)?,
    };
    if !review.is_object() {
        let found = json_type_name(&review);
        return Err(unreadable(format!("json: cannot unmarshal {found} into Go value of type {KIND_TYPE}")));
    }
    check_kind(&review, version)?;
    Ok(review)
}

/// Checks that a body can be decoded as a review of this version. Its kind may be missing.
fn check_kind(review: &Value, expected: &str) -> Result<(), String> {
    let (kind, api_version) = (string_at(review, "/kind"), string_at(review, "/apiVersion"));
    let (group, version) = group_version(api_version);
    let is_known = kind == "AdmissionReview" && group == REVIEW_GROUP && matches!(version, "v1" | "v1beta1");
    if kind.is_empty() && api_version.is_empty() || is_known && version == expected {
        return Ok(());
    }
    if is_known {
        let (from, to) = (format!("{version}.AdmissionReview"), format!("{expected}.AdmissionReview"));
        return Err(format!("converting ({from}) to ({to}): unknown conversion"));
    }
    Err(format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""))
}

/// Returns the error of the real server's HTTP client for a response that is no success.
pub(crate) fn describe_status(status: u16, text: &str) -> String {
    let known = match status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => text.trim(),
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            return format!("an error on the server ({:?}) has prevented the request from succeeding", text.trim());
        }
        _ => return format!("the server responded with the status code {status} but did not return more information"),
    };
    known.to_owned()
}

/// Verifies the response of a review.
pub(super) fn verify(uid: &str, version: &str, mutates: bool, review: &Value) -> Result<Reply, String> {
    let response = review.get("response").filter(|response| response.is_object());
    let response = response.ok_or("webhook response was absent")?;
    let patch = STANDARD.decode(string_at(response, "/patch")).unwrap_or_default();
    let patch_type = response.get("patchType").and_then(Value::as_str);
    if version == "v1" {
        check_identity(uid, review, response)?;
        check_patch(mutates, &patch, patch_type)?;
    }
    let warnings = array_at(response, "/warnings").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(Reply {
        is_allowed: response.get("allowed") == Some(&Value::Bool(true)),
        // A v1beta1 review may omit the type of its patch.
        patch_type: if version == "v1" { patch_type.unwrap_or_default().to_owned() } else { "JSONPatch".to_owned() },
        patch: if mutates { patch.into() } else { Bytes::new() },
        status: response.get("status").filter(|status| status.is_object()).cloned(),
        warnings,
    })
}

fn check_identity(uid: &str, review: &Value, response: &Value) -> Result<(), String> {
    let answered = string_at(response, "/uid");
    if answered != uid {
        return Err(format!("expected response.uid={uid:?}, got {answered:?}"));
    }
    let (kind, (group, version)) = (string_at(review, "/kind"), group_version(string_at(review, "/apiVersion")));
    if (group, version, kind) != (REVIEW_GROUP, "v1", "AdmissionReview") {
        let expected = format!("{REVIEW_GROUP}/v1, Kind=AdmissionReview");
        return Err(format!("expected webhook response of {expected}, got {group}/{version}, Kind={kind}"));
    }
    Ok(())
}

fn check_patch(mutates: bool, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
    let problem = match (mutates, patch.is_empty(), patch_type) {
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        (true, true, None) | (true, false, Some(_)) | (false, true, None) => return Ok(()),
    };
    Err(problem.to_owned())
}
