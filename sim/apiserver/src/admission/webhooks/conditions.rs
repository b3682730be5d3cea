//! Match conditions of webhooks: CEL expressions that decide whether a webhook reviews a write.

use sindri_cel::{Cel, Program, Type};

use super::configured::Webhook;
use super::review;
use crate::admission::attributes::{Attributes, Objects};
use crate::http::error::ApiError;
use crate::object::fields::string_at;
use crate::registry::resource::Target;

/// True if every match condition of a webhook is true. One that is false decides; otherwise one that fails counts by the
/// failure policy.
pub(super) fn are_met(
    attributes: &Attributes<'_>,
    webhook: &Webhook<'_>,
    target: &Target,
    objects: Objects<'_>,
) -> Result<bool, ApiError> {
    if webhook.conditions().is_empty() {
        return Ok(true);
    }
    let request = review::request(attributes, target, Objects { new: None, old: None });
    let object = objects.new.map(|object| review::in_version(attributes, target, object)).unwrap_or_default();
    let old = objects.old.map(|object| review::in_version(attributes, target, object)).unwrap_or_default();
    let variables = [
        ("object", Cel::from_json(&object)),
        ("oldObject", Cel::from_json(&old)),
        ("request", Cel::from_json(&request)),
    ];
    let mut errors = Vec::new();
    for condition in webhook.conditions() {
        match evaluate(string_at(condition, "/expression"), &variables) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => errors.push(error),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        _ if webhook.ignores_failures() => Ok(false),
        [one] => Err(ApiError::forbidden(&attributes.target.resource, attributes.name, one)),
        several => {
            let reason = format!("[{}]", several.join(", "));
            Err(ApiError::forbidden(&attributes.target.resource, attributes.name, &reason))
        }
    }
}

fn evaluate(expression: &str, variables: &[(&str, Cel<'_>)]) -> Result<bool, String> {
    let names = ["object", "oldObject", "request"].map(|name| (name, Type::Dyn));
    let failed = |reason: String| format!("expression '{expression}' resulted in error: {reason}");
    let program = Program::compile(expression, &names).map_err(|issues| failed(issues.to_string()))?;
    match program.evaluate(variables) {
        Ok(Cel::Bool(is_met)) => Ok(is_met),
        Ok(other) => Err(failed(format!("cel expression evaluates to {}", other.type_name()))),
        Err(error) => Err(failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_expression_may_use_the_object_and_the_request() {
        let (object, request) = (json!({"metadata": {"name": "a"}}), json!({"operation": "CREATE"}));
        let nothing = Value::Null;
        let variables = [
            ("object", Cel::from_json(&object)),
            ("oldObject", Cel::from_json(&nothing)),
            ("request", Cel::from_json(&request)),
        ];
        let expression = "oldObject == null && object.metadata.name == 'a' && request.operation == 'CREATE'";
        assert_eq!(evaluate(expression, &variables), Ok(true));
        assert!(evaluate("object.missing == 1", &variables).is_err());
    }
}
