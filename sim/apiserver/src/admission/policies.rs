//! ValidatingAdmissionPolicy: policies that a binding enforces with `Deny`.

use serde_json::{Value, json};
use sindri_cel::{Cel, Program, Type};

use super::attributes::{Attributes, Objects};
use super::matching::{find_matching_target, matches_selectors};
use crate::http::error::{ApiError, details};
use crate::object::fields::{array_at, name, string_at};
use crate::registry::resource::Resource;

const GROUP: &str = "admissionregistration.k8s.io";

/// Returns an error if a bound policy denies a write.
pub(crate) fn enforce_policies(attributes: &Attributes<'_>, objects: Objects<'_>) -> Result<(), ApiError> {
    let store = attributes.store;
    let bindings = store.collection(GROUP, "validatingadmissionpolicybindings");
    for entry in bindings.into_iter().flat_map(|collection| collection.values()) {
        let denies = array_at(&entry.object, "/spec/validationActions").iter().any(|action| action == "Deny");
        let policy_name = string_at(&entry.object, "/spec/policyName");
        let Some(policy) = store.find(GROUP, "validatingadmissionpolicies", None, policy_name).filter(|_| denies)
        else {
            continue;
        };
        if !matches_constraints(attributes, &policy["spec"]["matchConstraints"], objects) {
            continue;
        }
        if let Some(reason) = failed_validation(policy, objects) {
            let named = objects.new.or(objects.old).map(name).unwrap_or_default();
            return Err(denial(&attributes.target.resource, named, policy_name, &entry.key.name, &reason));
        }
    }
    Ok(())
}

/// True if the match constraints of a policy match a write.
fn matches_constraints(attributes: &Attributes<'_>, constraints: &Value, objects: Objects<'_>) -> bool {
    let is_equivalent = string_at(constraints, "/matchPolicy") != "Exact";
    let matches = |rules: &str| find_matching_target(attributes, array_at(constraints, rules), is_equivalent).is_some();
    matches("/resourceRules")
        && !matches("/excludeResourceRules")
        && matches_selectors(attributes, constraints, objects)
}

/// Returns the message of the first validation that is false, or that fails if the failure policy is not `Ignore`.
fn failed_validation(policy: &Value, objects: Objects<'_>) -> Option<String> {
    let nothing = Value::Null;
    let [object, old] = [objects.new, objects.old].map(|object| Cel::from_json(object.unwrap_or(&nothing)));
    let variables = [("object", object), ("oldObject", old)];
    let names = ["object", "oldObject"].map(|name| (name, Type::Dyn));
    let is_lenient = string_at(policy, "/spec/failurePolicy") == "Ignore";
    array_at(policy, "/spec/validations").iter().find_map(|validation| {
        let expression = string_at(validation, "/expression");
        // An expression that needs unsupported variables does not compile here, and denies nothing.
        let program = Program::compile(expression, &names).ok()?;
        match program.evaluate(&variables) {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => Some(validation_message(validation, &variables, &names)),
            Err(_) if is_lenient => None,
            Err(failure) => Some(format!("expression '{expression}' resulted in error: {failure}")),
        }
    })
}

/// Returns the message of a validation: from its message expression, its message, or its expression.
fn validation_message(validation: &Value, variables: &[(&str, Cel<'_>)], names: &[(&str, Type)]) -> String {
    let finder = string_at(validation, "/messageExpression");
    let program = Some(finder).filter(|finder| !finder.is_empty()).and_then(|it| Program::compile(it, names).ok());
    let found = program.as_ref().and_then(|program| program.evaluate(variables).ok());
    let message = found.as_ref().and_then(Cel::as_text).map(str::trim).filter(|message| !message.is_empty());
    match (message, string_at(validation, "/message")) {
        (Some(message), _) if !message.contains('\n') => message.to_owned(),
        (_, "") => format!("failed expression: {}", string_at(validation, "/expression").trim()),
        (_, message) => message.trim().to_owned(),
    }
}

fn denial(resource: &Resource, name: &str, policy: &str, binding: &str, reason: &str) -> ApiError {
    let words = format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {reason}");
    let message = format!("{} {name:?} is forbidden: {words}", resource.qualified());
    let mut details = details(name, &resource.group, &resource.plural);
    details["causes"] = json!([{ "message": words }]);
    ApiError::new(422, "Invalid", message, Some(details))
}
