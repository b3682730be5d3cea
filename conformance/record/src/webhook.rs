//! Webhooks of an exchange: replies by path, and the reviews that they got.
//!
//! A remote API server calls them on a port; a simulated one asks for the same replies without a network.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use sindri_cluster::webhook_server::ReviewReply;

/// Reply of a webhook in a script.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedReply {
    /// Response of the review, without the UID.
    response: Value,
    /// JSON patch of the response.
    patch: Option<Value>,
    /// Fields that replace those of the review, such as another `apiVersion`; null removes a field.
    review: BTreeMap<String, Value>,
    /// Text instead of a review.
    text: Option<String>,
    /// HTTP status; 0 is 200.
    status: u16,
    /// Time before the reply.
    delay_milliseconds: u64,
    /// Conversion of the objects of a ConversionReview: fields of the spec that are renamed, by the version that has them.
    rename: BTreeMap<String, String>,
}

/// Webhooks of one exchange. Clones share the log of reviews.
#[derive(Clone, Debug, Default)]
pub struct Webhooks {
    replies: Arc<BTreeMap<String, ScriptedReply>>,
    reviews: Arc<Mutex<Vec<Value>>>,
}

impl Webhooks {
    /// Creates webhooks with these replies by path.
    pub fn new(replies: BTreeMap<String, ScriptedReply>) -> Self {
        Self { replies: Arc::new(replies), reviews: Arc::default() }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Returns the reply to a review at a path, and logs the review.
    pub fn reply(&self, path: &str, body: &[u8]) -> ReviewReply {
        let review: Value = serde_json::from_slice(body).unwrap_or_default();
        self.log(path, &review);
        let Some(reply) = self.replies.get(path) else {
            let body = "no such webhook".to_owned();
            return ReviewReply { status: 404, content_type: "text/plain", body, delay: Duration::ZERO };
        };
        let (content_type, body) = match &reply.text {
            Some(text) => ("text/plain", text.clone()),
            None => ("application/json", reply.review_of(&review).to_string()),
        };
        let status = if reply.status == 0 { 200 } else { reply.status };
        ReviewReply { status, content_type, body, delay: Duration::from_millis(reply.delay_milliseconds) }
    }

    /// Logs the review of an admission. The number of conversions depends on caches of the server.
    fn log(&self, path: &str, review: &Value) {
        if review["kind"] == "ConversionReview" {
            return;
        }
        let mut request = review["request"].clone();
        if let Some(fields) = request.as_object_mut() {
            // The administrators of the servers have different names.
            fields.remove("userInfo");
        }
        let logged = json!({"path": path, "apiVersion": review["apiVersion"], "request": request});
        self.reviews.lock().unwrap_or_else(PoisonError::into_inner).push(logged);
    }

    /// Removes and returns the logged reviews, by path.
    pub fn take_reviews(&self) -> Vec<Value> {
        let mut reviews = std::mem::take(&mut *self.reviews.lock().unwrap_or_else(PoisonError::into_inner));
        reviews.sort_by_key(|review| review["path"].as_str().unwrap_or_default().to_owned());
        reviews
    }
}

impl ScriptedReply {
    fn review_of(&self, review: &Value) -> Value {
        let mut response = self.response.clone();
        if !response.is_object() {
            response = json!({});
        }
        if response.get("uid").is_none() {
            response["uid"] = review["request"]["uid"].clone();
        }
        if let Some(patch) = &self.patch {
            let text = patch.as_str().map_or_else(|| patch.to_string(), str::to_owned);
            response["patch"] = json!(STANDARD.encode(text));
        }
        if review["kind"] == "ConversionReview" && response.get("convertedObjects").is_none() {
            response["convertedObjects"] = self.convert(&review["request"]);
        }
        let mut sent = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
        for (field, value) in &self.review {
            match (value, sent.as_object_mut()) {
                (Value::Null, Some(fields)) => drop(fields.remove(field)),
                (value, Some(fields)) => drop(fields.insert(field.clone(), value.clone())),
                (_, None) => {}
            }
        }
        sent
    }

    /// Converts objects to the desired version.
    fn convert(&self, request: &Value) -> Value {
        let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
        let version = |api_version: &str| api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let convert = |object: &Value| {
            let mut converted = object.clone();
            let from = version(object["apiVersion"].as_str().unwrap_or_default());
            converted["apiVersion"] = json!(desired);
            let fields = (self.rename.get(&from), self.rename.get(&version(desired)));
            if let (Some(old), Some(new), Some(spec)) = (fields.0, fields.1, converted["spec"].as_object_mut())
                && let Some(value) = spec.remove(old)
            {
                spec.insert(new.clone(), value);
            }
            converted
        };
        request["objects"].as_array().into_iter().flatten().map(convert).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_the_uid_of_its_review_and_an_encoded_patch() {
        let reply = ScriptedReply {
            response: json!({"allowed": true, "patchType": "JSONPatch"}),
            patch: Some(json!([])),
            ..ScriptedReply::default()
        };
        let webhooks = Webhooks::new([("/a".to_owned(), reply)].into());
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "7", "userInfo": {}, "name": "x"}});
        let sent = webhooks.reply("/a", review.to_string().as_bytes());
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        let expected = json!({"allowed": true, "patch": "W10=", "patchType": "JSONPatch", "uid": "7"});
        assert_eq!((sent.status, &body["response"], &body["kind"]), (200, &expected, &review["kind"]));
        assert_eq!(webhooks.take_reviews()[0]["request"], json!({"uid": "7", "name": "x"}));
        assert_eq!(webhooks.reply("/b", b"{}").status, 404);
    }
}
