//! Policies of admission: rules about objects of any kind that whoever binds them enforces.
//!
//! Of webhooks only one thing is known here: whether there is a service to call. Nobody is called.

use serde_json::{Value, json};
use sindri_cel::{Cel, Program, Type};

use crate::http::error::{ApiError, details};
use crate::object::fields::{list, text};
use crate::registry::resource::Resource;
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
                return Err(denied(resource, crate::object::fields::name(object), name, &entry.key.name, &why));
            }
        }
        Ok(())
    }

    /// An error if a webhook that must be asked has no service.
    pub(crate) fn reach_webhooks(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        operation: &str,
    ) -> Result<(), ApiError> {
        let shelf = self.store.shelf(GROUP, "validatingwebhookconfigurations");
        let configurations = shelf.into_iter().flat_map(|shelf| shelf.values());
        for webhook in configurations.flat_map(|entry| list(&entry.object, "/webhooks")) {
            let asked = json!({"spec": {"matchConstraints": {
                "resourceRules": webhook["rules"], "namespaceSelector": webhook["namespaceSelector"],
            }}});
            let (name, place) =
                (text(webhook, "/clientConfig/service/name"), text(webhook, "/clientConfig/service/namespace"));
            let must = text(webhook, "/failurePolicy") == "Fail" && !name.is_empty();
            if must
                && self.is_about(&asked, resource, namespace, operation)
                && self.get("", "services", Some(place), name).is_none()
            {
                return Err(unreachable_webhook(webhook, name, place));
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

fn unreachable_webhook(webhook: &Value, name: &str, place: &str) -> ApiError {
    let number = |pointer: &str| webhook.pointer(pointer).map(Value::to_string).unwrap_or_default();
    let (port, seconds) = (number("/clientConfig/service/port"), number("/timeoutSeconds"));
    let path = text(webhook, "/clientConfig/service/path").trim_start_matches('/');
    let why = format!(
        "failed calling webhook {}: failed to call webhook: Post \"https://{name}.{place}.svc:{port}/{path}?timeout={seconds}s\": service {name:?} not found",
        json!(text(webhook, "/name"))
    );
    let details = json!({"causes": [{ "message": why }]});
    ApiError::new(500, "InternalError", format!("Internal error occurred: {why}"), Some(details))
}

/// The words of the first rule that does not hold, or that fails where failing denies.
fn broken(policy: &Value, live: Option<&Value>, object: &Value) -> Option<String> {
    let nothing = Value::Null;
    let variables = [("object", Cel::of(object)), ("oldObject", Cel::of(live.unwrap_or(&nothing)))];
    let names = ["object", "oldObject"].map(|name| (name, Type::Dyn));
    let is_lenient = text(policy, "/spec/failurePolicy") == "Ignore";
    list(policy, "/spec/validations").iter().find_map(|validation| {
        let expression = text(validation, "/expression");
        // What cannot be compiled here, because it needs what is left out, denies nothing.
        let program = Program::compile(expression, &names).ok()?;
        match program.evaluate(&variables) {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => Some(words(validation, &variables, &names)),
            Err(_) if is_lenient => None,
            Err(failure) => Some(format!("expression '{expression}' resulted in error: {failure}")),
        }
    })
}

/// What a rule says about itself: words that it finds, words that it has, or itself.
fn words(validation: &Value, variables: &[(&str, Cel<'_>)], names: &[(&str, Type)]) -> String {
    let finder = text(validation, "/messageExpression");
    let program = Some(finder).filter(|finder| !finder.is_empty()).and_then(|it| Program::compile(it, names).ok());
    let found = program.as_ref().and_then(|program| program.evaluate(variables).ok());
    let said = found.as_ref().and_then(Cel::as_text).map(str::trim).filter(|said| !said.is_empty());
    match (said, text(validation, "/message")) {
        (Some(said), _) if !said.contains('\n') => said.to_owned(),
        (_, "") => format!("failed expression: {}", text(validation, "/expression").trim()),
        (_, message) => message.trim().to_owned(),
    }
}

fn denied(resource: &Resource, name: &str, policy: &str, binding: &str, why: &str) -> ApiError {
    let words = format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}");
    let message = format!("{} {name:?} is forbidden: {words}", resource.qualified());
    let mut details = details(name, &resource.group, &resource.plural);
    details["causes"] = json!([{ "message": words }]);
    ApiError::new(422, "Invalid", message, Some(details))
}
