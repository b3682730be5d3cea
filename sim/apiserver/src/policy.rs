//! Policies of admission: rules about objects of any kind that whoever binds them enforces.

use serde_json::{Value, json};

use crate::error::{ApiError, details};
use crate::pointer::{list, text};
use crate::registry::Resource;
use crate::rule::{Variables, evaluate};
use crate::server::ApiServer;

const GROUP: &str = "admissionregistration.k8s.io";

impl ApiServer {
    /// An error if a policy denies what is about to be written.
    pub(crate) fn enforce_policies(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        live: Option<&Value>,
        object: &Value,
    ) -> Result<(), ApiError> {
        let bindings = self.store.shelf(GROUP, "validatingadmissionpolicybindings");
        for entry in bindings.into_iter().flat_map(|shelf| shelf.values()) {
            let denies = list(&entry.object, "/spec/validationActions").iter().any(|action| action == "Deny");
            let name = text(&entry.object, "/spec/policyName");
            let Some(policy) = self.get(GROUP, "validatingadmissionpolicies", None, name).filter(|_| denies) else {
                continue;
            };
            let operation = if live.is_some() { "UPDATE" } else { "CREATE" };
            if !self.is_about(policy, resource, namespace, operation) {
                continue;
            }
            if let Some(why) = broken(policy, live, object) {
                return Err(denied(resource, crate::pointer::name(object), name, &entry.key.name, &why));
            }
        }
        Ok(())
    }

    fn is_about(&self, policy: &Value, resource: &Resource, namespace: Option<&str>, operation: &str) -> bool {
        let has = |rule: &Value, field: &str, wanted: &str| {
            list(rule, field).iter().filter_map(Value::as_str).any(|value| value == "*" || value == wanted)
        };
        let matches = list(policy, "/spec/matchConstraints/resourceRules").iter().any(|rule| {
            has(rule, "/apiGroups", &resource.group)
                && has(rule, "/resources", &resource.plural)
                && has(rule, "/operations", operation)
        });
        let wanted = policy.pointer("/spec/matchConstraints/namespaceSelector/matchLabels").and_then(Value::as_object);
        let labels = namespace
            .and_then(|namespace| self.get("", "namespaces", None, namespace))
            .and_then(|namespace| namespace.pointer("/metadata/labels"));
        let fits = wanted
            .into_iter()
            .flatten()
            .all(|(key, value)| namespace.is_none() || labels.and_then(|labels| labels.get(key)) == Some(value));
        matches && fits
    }
}

/// The words of the first rule that does not hold.
fn broken(policy: &Value, live: Option<&Value>, object: &Value) -> Option<String> {
    let old = live.cloned().unwrap_or_default();
    let variables = Variables::from([("object", object.clone()), ("oldObject", old)]);
    list(policy, "/spec/validations").iter().find_map(|validation| {
        let expression = text(validation, "/expression");
        if evaluate(expression, &variables)? != json!(false) {
            return None;
        }
        Some(match text(validation, "/message") {
            "" => format!("failed expression: {expression}"),
            message => message.to_owned(),
        })
    })
}

fn denied(resource: &Resource, name: &str, policy: &str, binding: &str, why: &str) -> ApiError {
    let words = format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}");
    let message = format!("{} {name:?} is forbidden: {words}", resource.qualified());
    let mut details = details(name, &resource.group, &resource.plural);
    details["causes"] = json!([{ "message": words }]);
    ApiError::new(422, "Invalid", message, Some(details))
}
