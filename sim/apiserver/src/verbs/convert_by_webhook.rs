//! Conversion of custom resources by the webhook of their CRD: which objects must be converted, and what its replies mean.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::read::find_live;
use super::resource_request::ResourceRequest;
use crate::admission::webhooks::address;
use crate::admission::webhooks::reply::describe_status;
use crate::http::error::ApiError;
use crate::http::webhook_call::{WebhookAnswer, WebhookAnswers, WebhookCall};
use crate::object::fields::{array_at, group_version, metadata, name, string_at, uid};
use crate::printing::convert::convert;
use crate::registry::conversion;
use crate::registry::resource::{Resource, Target};
use crate::registry::webhook_conversion::without_resource_version;
use crate::schema::custom_resource;
use crate::storage::ids::digest_uid;
use crate::storage::store::Store;

/// API group of reviews.
const REVIEW_GROUP: &str = "apiextensions.k8s.io";
/// Timeout of a conversion.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Makes sure that the conversions of the stored objects that a request reads are known.
pub(super) fn convert_read_objects(store: &Store, request: &ResourceRequest<'_>) -> Result<(), ApiError> {
    let resource = &request.target.resource;
    if resource.conversion.is_none() || request.http.method == Method::POST {
        return Ok(());
    }
    let objects: Vec<&Value> = if request.name.is_empty() {
        let collection = store.collection(&resource.group, &resource.plural).into_iter();
        let entries = collection.flat_map(|collection| collection.values());
        let here = entries.filter(|entry| request.namespace.is_none() || entry.key.namespace == request.namespace);
        here.map(|entry| &***entry.object).collect()
    } else {
        find_live(store, request).map(|live| &****live).into_iter().collect()
    };
    convert_objects(store, resource, &request.target.api_version(), &objects, request.answers)
}

/// Converts a written object to its storage version. Its conversion back, for the response, is known later.
pub(super) fn convert_to_storage(
    store: &Store,
    request: &ResourceRequest<'_>,
    object: Value,
) -> Result<Value, ApiError> {
    let (resource, storage) = (&request.target.resource, conversion::storage_api_version(&request.target.resource));
    let Some(webhook) = resource.conversion.as_ref().filter(|_| request.target.api_version() != storage) else {
        return Ok(conversion::to_storage_version(&request.target, object));
    };
    convert_objects(store, resource, &storage, &[&object], request.answers)?;
    let version = resource.versions.iter().find(|version| version.name == resource.storage);
    let stored = match version {
        Some(version) => {
            let target = Target { resource: resource.clone(), version: version.clone() };
            let mut stored = Arc::unwrap_or_clone(convert(&target, &Arc::new(object)));
            if let Some(schema) = &target.version.schema {
                custom_resource::fill_defaults(schema, &mut stored);
            }
            stored
        }
        // A storage version that is not served has no schema here.
        None => webhook.find(&object, &storage).unwrap_or(object),
    };
    convert_objects(store, resource, &request.target.api_version(), &[&stored], request.answers)?;
    Ok(stored)
}

/// Makes sure that the conversions of some objects to a version are known. Otherwise the webhook must be called.
pub(crate) fn convert_objects(
    store: &Store,
    resource: &Resource,
    api_version: &str,
    objects: &[&Value],
    answers: &WebhookAnswers,
) -> Result<(), ApiError> {
    let Some(webhook) = &resource.conversion else { return Ok(()) };
    let is_unknown = |object: &&&Value| {
        string_at(object, "/apiVersion") != api_version && webhook.find(object, api_version).is_none()
    };
    let unknown: Vec<&Value> = objects.iter().filter(is_unknown).copied().collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let (group, version) = group_version(string_at(first, "/apiVersion"));
    let whole = format!("conversion webhook for {group}/{version}, Kind={}", string_at(first, "/kind"));
    let call = build_call(store, resource, &webhook.settings, api_version, &unknown)
        .map_err(|reason| ApiError::unknown(format!("{whole} failed: {reason}")))?;
    let answer = answers.get(&call.id).ok_or_else(|| ApiError::AwaitsWebhooks(vec![call.clone()]))?;
    let converted =
        read_answer(&call, answer).map_err(|reason| ApiError::unknown(format!("{whole} failed: {reason}")))?;
    if converted.len() != unknown.len() {
        let (found, expected) = (converted.len(), unknown.len());
        return Err(ApiError::unknown(format!("{whole} returned {found} objects, expected {expected}")));
    }
    for (original, converted) in unknown.iter().zip(converted) {
        let converted = check_converted(original, api_version, converted)
            .map_err(|reason| ApiError::unknown(format!("{whole} returned invalid object{reason}")))?;
        webhook.add(original, api_version, converted);
    }
    Ok(())
}

/// Builds the call of a webhook. The error is the reason for which its Service does not resolve.
fn build_call(
    store: &Store,
    resource: &Resource,
    settings: &Value,
    api_version: &str,
    objects: &[&Value],
) -> Result<WebhookCall, String> {
    let client_config = &settings["clientConfig"];
    let address = address::resolve(store, client_config, TIMEOUT);
    if let Some(failure) = address.failure {
        return Err(format!("Post {:?}: {failure}", address.url));
    }
    let accepted = array_at(settings, "/conversionReviewVersions").iter();
    let review_version = accepted.filter_map(Value::as_str).find(|version| matches!(*version, "v1" | "v1beta1"));
    let review_version = review_version.ok_or("no supported conversion review versions")?;
    let objects: Vec<Value> = objects.iter().map(|object| without_resource_version(object)).collect();
    let mut request = json!({"desiredAPIVersion": api_version, "objects": objects});
    let id = digest_uid(&[&resource.group, &resource.plural, &request.to_string()]);
    request["uid"] = json!(id);
    let review = json!({
        "kind": "ConversionReview", "apiVersion": format!("{REVIEW_GROUP}/{review_version}"), "request": request,
    });
    Ok(WebhookCall {
        id,
        url: address.url,
        host: address.host,
        port: address.port,
        server_name: address.server_name,
        ca_bundle: STANDARD.decode(string_at(client_config, "/caBundle")).unwrap_or_default().into(),
        timeout: TIMEOUT,
        body: review.to_string().into(),
    })
}

/// Returns the objects of a reply.
fn read_answer(call: &WebhookCall, answer: &WebhookAnswer) -> Result<Vec<Value>, String> {
    let reply = answer.as_ref().map_err(|error| format!("Post {:?}: {error}", call.url))?;
    if !(200..300).contains(&reply.status) {
        return Err(describe_status(reply.status, &String::from_utf8_lossy(&reply.body)));
    }
    let review: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
    let (kind, api_version) = (string_at(&review, "/kind"), string_at(&review, "/apiVersion"));
    let is_beta = api_version == format!("{REVIEW_GROUP}/v1beta1");
    if !is_beta && (kind, api_version) != ("ConversionReview", &format!("{REVIEW_GROUP}/v1")) {
        let (group, version) = group_version(api_version);
        let expected = format!("{REVIEW_GROUP}/v1, Kind=ConversionReview");
        return Err(format!("expected webhook response of {expected}, got {group}/{version}, Kind={kind}"));
    }
    let response = review.get("response").filter(|response| response.is_object()).ok_or("no response provided")?;
    let answered = string_at(response, "/uid");
    if !is_beta && answered != call.id {
        return Err(format!("expected response.uid={:?}, got {answered:?}", call.id));
    }
    match (string_at(response, "/result/status"), string_at(response, "/result/message")) {
        ("Success", _) => Ok(array_at(response, "/convertedObjects").to_vec()),
        (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

/// Checks a converted object, and restores the metadata that a webhook cannot change: all but labels and annotations.
fn check_converted(original: &Value, api_version: &str, mut converted: Value) -> Result<Value, String> {
    let found = string_at(&converted, "/apiVersion");
    if found != api_version {
        return Err(format!(" at index 0: invalid groupVersion (expected {api_version}, received {found})"));
    }
    let (kind, expected) = (string_at(&converted, "/kind"), string_at(original, "/kind"));
    if kind != expected {
        return Err(format!(" at index 0: invalid kind (expected {expected}, received {kind})"));
    }
    for (what, before, after) in [
        ("name", name(original), name(&converted)),
        ("namespace", string_at(original, "/metadata/namespace"), string_at(&converted, "/metadata/namespace")),
        ("UID", uid(original), uid(&converted)),
    ] {
        if before != after {
            return Err(format!(": must have the same {what}: {before} != {after}"));
        }
    }
    let changed = ["labels", "annotations"].map(|field| (field, converted["metadata"].get(field).cloned()));
    converted["metadata"] = without_resource_version(original)["metadata"].clone();
    for (field, value) in changed {
        match value {
            Some(value) => drop(metadata(&mut converted).insert(field.to_owned(), value)),
            None => drop(metadata(&mut converted).remove(field)),
        }
    }
    Ok(converted)
}
