//! Validating webhooks. None is called; a request fails only if a webhook that must be called has no Service.

use serde_json::{Value, json};

use super::matching::matches_rules;
use crate::http::error::ApiError;
use crate::object::fields::{array_at, string_at};
use crate::registry::resource::Resource;
use crate::storage::store::Store;

const GROUP: &str = "admissionregistration.k8s.io";

/// Returns an error if a webhook with the failure policy `Fail` has no Service.
pub(crate) fn check_webhooks_reachable(
    store: &Store,
    resource: &Resource,
    namespace: Option<&str>,
    operation: &str,
) -> Result<(), ApiError> {
    let collection = store.collection(GROUP, "validatingwebhookconfigurations");
    let configurations = collection.into_iter().flat_map(|collection| collection.values());
    for webhook in configurations.flat_map(|entry| array_at(&entry.object, "/webhooks")) {
        let requested = json!({"spec": {"matchConstraints": {
            "resourceRules": webhook["rules"], "namespaceSelector": webhook["namespaceSelector"],
        }}});
        let (name, place) =
            (string_at(webhook, "/clientConfig/service/name"), string_at(webhook, "/clientConfig/service/namespace"));
        let must = string_at(webhook, "/failurePolicy") == "Fail" && !name.is_empty();
        if must
            && matches_rules(store, &requested, resource, namespace, operation)
            && store.find("", "services", Some(place), name).is_none()
        {
            return Err(unreachable_webhook(webhook, name, place));
        }
    }
    Ok(())
}

fn unreachable_webhook(webhook: &Value, name: &str, place: &str) -> ApiError {
    let number = |pointer: &str| webhook.pointer(pointer).map(Value::to_string).unwrap_or_default();
    let (port, seconds) = (number("/clientConfig/service/port"), number("/timeoutSeconds"));
    let path = string_at(webhook, "/clientConfig/service/path").trim_start_matches('/');
    let reason = format!(
        "failed calling webhook {}: failed to call webhook: Post \"https://{name}.{place}.svc:{port}/{path}?timeout={seconds}s\": service {name:?} not found",
        json!(string_at(webhook, "/name"))
    );
    let details = json!({"causes": [{ "message": reason }]});
    ApiError::new(500, "InternalError", format!("Internal error occurred: {reason}"), Some(details))
}
