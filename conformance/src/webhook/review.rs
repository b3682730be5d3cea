//! What an admission webhook is told and what it answers: a review goes in, a review with a JSON patch comes out. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sindri_merge::merge_patch;
use thiserror::Error;

use crate::rewrite::Rewrite;

/// What is no review that can be answered.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum ReviewError {
    /// It is not JSON.
    #[error("the review cannot be read: {0}")]
    Unreadable(String),
    /// An answer has to name the request.
    #[error("the review has no request with a uid")]
    NoRequest,
}

/// Answers a review: everything is allowed, and only what the rewrites name is changed.
pub(super) fn answer(review: &[u8], rewrites: &[Rewrite]) -> Result<Value, ReviewError> {
    let review: Value = serde_json::from_slice(review).map_err(|error| ReviewError::Unreadable(error.to_string()))?;
    let request = &review["request"];
    let uid = request["uid"].as_str().ok_or(ReviewError::NoRequest)?;
    let object = &request["object"];
    // A write of its status or its scale is not a write of it.
    let fits = |rewrite: &&Rewrite| {
        request["resource"]["resource"] == *rewrite.resource
            && request["subResource"].as_str().unwrap_or_default().is_empty()
            && object["metadata"]["name"] == *rewrite.name
    };
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some(rewrite) = rewrites.iter().find(fits) {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(json_patch(object, &rewrite.patch).to_string()));
    }
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

/// The JSON patch that does to an object what a merge patch does: one operation for each field that it names.
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

    fn answered(review: &Value, patch: Value) -> Value {
        let rewrite = Rewrite { resource: "configmaps".into(), name: "note".into(), patch };
        answer(review.to_string().as_bytes(), &[rewrite]).unwrap()
    }

    fn operations(answer: &Value) -> Value {
        let patch = STANDARD.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
        serde_json::from_slice(&patch).unwrap()
    }

    #[test]
    fn a_review_of_the_object_is_answered_with_a_patch() {
        let answer = answered(&review("configmaps", &note()), json!({"data": {"a": "hooked"}}));
        assert_eq!(operations(&answer), json!([{"op": "add", "path": "/data", "value": {"a": "hooked", "b": "kept"}}]));
        let response =
            json!({"uid": "7f", "allowed": true, "patchType": "JSONPatch", "patch": answer["response"]["patch"]});
        let whole = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        assert_eq!(answer, whole);
    }

    #[test]
    fn fields_are_added_and_taken_away_and_their_names_are_escaped() {
        let patch = json!({"immutable": null, "absent": null, "binaryData": {"x": "eA=="}, "a/b~c": 1});
        let answer = answered(&review("configmaps", &note()), patch);
        let wanted = json!([
            {"op": "add", "path": "/a~1b~0c", "value": 1},
            {"op": "add", "path": "/binaryData", "value": {"x": "eA=="}},
            {"op": "remove", "path": "/immutable"},
        ]);
        assert_eq!(operations(&answer), wanted);
    }

    #[test]
    fn whatever_the_fault_does_not_name_is_let_through_as_it_is() {
        let mut other = note();
        other["metadata"]["name"] = json!("other");
        let mut status = review("configmaps", &note());
        status["request"]["subResource"] = json!("status");
        for review in [review("configmaps", &other), review("secrets", &note()), status] {
            let answer = answered(&review, json!({"data": null}));
            assert_eq!(answer["response"], json!({"uid": "7f", "allowed": true}), "{review}");
        }
    }

    #[test]
    fn what_is_no_review_is_refused() {
        assert!(matches!(answer(b"{", &[]), Err(ReviewError::Unreadable(_))));
        assert_eq!(answer(b"{}", &[]), Err(ReviewError::NoRequest));
    }
}
