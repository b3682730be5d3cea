//! Admission reviews: a review with a request goes in, a review with a response and a JSON patch comes out. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sindri_merge::merge_patch;
use thiserror::Error;

use crate::rewrite::Rewrite;

/// A body that is no valid review.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum ReviewError {
    /// Invalid JSON.
    #[error("the review cannot be parsed: {0}")]
    Invalid(String),
    /// The response needs the uid of the request.
    #[error("the review has no request with a uid")]
    NoRequest,
}

/// Responds to a review: everything is allowed, and only objects with a rewrite are changed.
pub(super) fn respond(review: &[u8], rewrites: &[Rewrite]) -> Result<Value, ReviewError> {
    let review: Value = serde_json::from_slice(review).map_err(|error| ReviewError::Invalid(error.to_string()))?;
    let request = &review["request"];
    let uid = request["uid"].as_str().ok_or(ReviewError::NoRequest)?;
    let object = &request["object"];
    // Writes of subresources such as status are not rewritten.
    let matches = |rewrite: &&Rewrite| {
        request["resource"]["resource"] == *rewrite.resource
            && request["subResource"].as_str().unwrap_or_default().is_empty()
            && object["metadata"]["name"] == *rewrite.name
    };
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some(rewrite) = rewrites.iter().find(matches) {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(json_patch(object, &rewrite.patch).to_string()));
    }
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

/// Converts a merge patch to a JSON patch, with one operation for each top-level field.
fn json_patch(object: &Value, patch: &Value) -> Value {
    let merged = merge_patch(object, patch);
    let operation = |name: &String| {
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        match (object.get(name), merged.get(name)) {
            (_, Some(value)) => Some(json!({"op": "add", "path": path, "value": value})),
            (Some(_), None) => Some(json!({"op": "remove", "path": path})),
            (None, None) => None,
        }
    };
    patch.as_object().into_iter().flat_map(|fields| fields.keys()).filter_map(operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(resource: &str, object: &Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "7f", "operation": "CREATE", "namespace": "default", "name": object["metadata"]["name"],
                "resource": {"group": "", "version": "v1", "resource": resource}, "object": object,
            },
        })
    }

    fn note() -> Value {
        json!({"metadata": {"name": "note"}, "data": {"a": "declared", "b": "kept"}, "immutable": false})
    }

    fn response_to(review: &Value, patch: Value) -> Value {
        let rewrite = Rewrite { resource: "configmaps".into(), name: "note".into(), patch };
        respond(review.to_string().as_bytes(), &[rewrite]).unwrap()
    }

    fn operations(response: &Value) -> Value {
        let patch = STANDARD.decode(response["response"]["patch"].as_str().unwrap()).unwrap();
        serde_json::from_slice(&patch).unwrap()
    }

    #[test]
    fn a_review_of_the_object_gets_a_patch() {
        let response = response_to(&review("configmaps", &note()), json!({"data": {"a": "hooked"}}));
        assert_eq!(
            operations(&response),
            json!([{"op": "add", "path": "/data", "value": {"a": "hooked", "b": "kept"}}])
        );
        let inner =
            json!({"uid": "7f", "allowed": true, "patchType": "JSONPatch", "patch": response["response"]["patch"]});
        let whole = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": inner});
        assert_eq!(response, whole);
    }

    #[test]
    fn fields_are_added_and_removed_and_their_names_are_escaped() {
        let patch = json!({"immutable": null, "absent": null, "binaryData": {"x": "eA=="}, "a/b~c": 1});
        let response = response_to(&review("configmaps", &note()), patch);
        let expected = json!([
            {"op": "add", "path": "/a~1b~0c", "value": 1},
            {"op": "add", "path": "/binaryData", "value": {"x": "eA=="}},
            {"op": "remove", "path": "/immutable"},
        ]);
        assert_eq!(operations(&response), expected);
    }

    #[test]
    fn other_objects_and_subresources_are_not_changed() {
        let mut other = note();
        other["metadata"]["name"] = json!("other");
        let mut status = review("configmaps", &note());
        status["request"]["subResource"] = json!("status");
        for review in [review("configmaps", &other), review("secrets", &note()), status] {
            let response = response_to(&review, json!({"data": null}));
            assert_eq!(response["response"], json!({"uid": "7f", "allowed": true}), "{review}");
        }
    }

    #[test]
    fn an_invalid_review_is_rejected() {
        assert!(matches!(respond(b"{", &[]), Err(ReviewError::Invalid(_))));
        assert_eq!(respond(b"{}", &[]), Err(ReviewError::NoRequest));
    }
}
