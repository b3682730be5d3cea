//! AdmissionReviews that webhooks get.

use std::sync::Arc;

use serde_json::{Value, json};

use super::configured::Webhook;
use crate::admission::attributes::{Attributes, Kind, Objects};
use crate::printing::convert::convert;
use crate::registry::resource::Target;
use crate::storage::ids::digest_uid;

/// API group of reviews.
pub(super) const REVIEW_GROUP: &str = "admission.k8s.io";

/// Returns the request of a review, without its UID.
pub(super) fn request(attributes: &Attributes<'_>, target: &Target, objects: Objects<'_>) -> Value {
    let requested = attributes.target;
    let kind = if has_kind_of_resource(attributes) { Kind::from_target(target) } else { attributes.kind.clone() };
    let shown = |object: Option<&Value>| object.map(|object| in_version(attributes, target, object));
    let mut request = json!({
        "kind": kind.to_value(),
        "resource": resource(target),
        "requestKind": attributes.kind.to_value(),
        "requestResource": resource(requested),
        "operation": attributes.operation.name(),
        "userInfo": attributes.user.to_value(),
        "object": shown(objects.new),
        "oldObject": shown(objects.old),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    });
    let texts = [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name),
        ("namespace", attributes.namespace),
    ];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        request[field] = json!(text);
    }
    request
}

fn resource(target: &Target) -> Value {
    let resource = &target.resource;
    json!({"group": resource.group, "version": target.version.name, "resource": resource.plural})
}

fn has_kind_of_resource(attributes: &Attributes<'_>) -> bool {
    attributes.kind == Kind::from_target(attributes.target)
}

/// Returns an object in the version of the review.
pub(super) fn in_version(attributes: &Attributes<'_>, target: &Target, object: &Value) -> Value {
    if target.api_version() == attributes.target.api_version() || !has_kind_of_resource(attributes) {
        return object.clone();
    }
    Arc::unwrap_or_clone(convert(target, &Arc::new(object.clone())))
}

/// Returns the UID of a review, which depends on the webhook and the content only, and the review in JSON.
pub(super) fn identify(webhook: &Webhook<'_>, round: usize, version: &str, mut request: Value) -> (String, String) {
    let uid = digest_uid(&[&webhook.id, &round.to_string(), &request.to_string()]);
    request["uid"] = json!(uid);
    let review = json!({
        "kind": "AdmissionReview", "apiVersion": format!("{REVIEW_GROUP}/{version}"),
        "request": request,
    });
    (uid, review.to_string())
}
