//! Checks the CEL rules that a CRD declares: they must compile, and their messages, reasons and paths must be valid.

use serde_json::{Value, json};
use sindri_cel::{Program, Shape, Type};

use super::cel_rules::{declared_rules, field_path, variable_types};
use super::structural::{flag, properties};
use crate::object::field_error::FieldError;
use crate::object::fields::string_at;

/// Reasons that a rule may declare.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the rules of a schema and of its subschemas.
pub(super) fn validate(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut found = RuleErrors::default();
    visit(schema, true, None, path, &mut found);
    // Format errors come before compilation errors.
    errors.extend(found.format);
    errors.extend(found.compilation);
}

/// Errors by category, in the order in which they are reported.
#[derive(Default)]
struct RuleErrors {
    format: Vec<FieldError>,
    compilation: Vec<FieldError>,
}

/// `within` is the path of the enclosing list, if any, whose elements cannot be correlated with those of the old object.
fn visit(schema: &Value, is_root: bool, within: Option<&str>, path: &str, found: &mut RuleErrors) {
    let below = |schema: &Value, within: Option<&str>, path: &str, found: &mut RuleErrors| {
        visit(schema, flag(schema, "x-kubernetes-embedded-resource"), within, path, found);
    };
    let before = found.format.len();
    for (_, schema, path) in properties(schema, path) {
        below(schema, within, &path, found);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        below(values, within, &format!("{path}.additionalProperties"), found);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        let is_correlatable = string_at(schema, "/x-kubernetes-list-type") == "map";
        let within = if is_correlatable { within } else { within.or(Some(path)) };
        below(items, within, &format!("{path}.items"), found);
    }
    let rules = declared_rules(schema);
    let path_to = |index: usize| format!("{path}.x-kubernetes-validations[{index}]");
    for (index, rule) in rules.iter().enumerate() {
        check_format(rule, schema, &path_to(index), &mut found.format);
    }
    if rules.is_empty() || found.format.len() > before {
        return;
    }
    let Some(declared) = Type::from_shape(&Shape::from_schema(schema, is_root)) else {
        let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        let field = format!("{path}.x-kubernetes-validations");
        found.compilation.push(FieldError {
            reason: "InternalError",
            field,
            message: format!("Internal error: {detail}"),
        });
        return;
    };
    for (index, rule) in rules.iter().enumerate() {
        check_compilation(rule, declared.clone(), within, &path_to(index), &mut found.compilation);
    }
}

/// Checks the texts, the reason and the path of a rule.
fn check_format(rule: &Value, schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let has_line_breaks = |text: &str| text.contains(['\n', '\r']);
    let (condition, message) = (string_at(rule, "/rule"), string_at(rule, "/message"));
    let path_to = |name: &str| format!("{path}.{name}");
    if condition.trim().is_empty() {
        errors.push(FieldError::required(path_to("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(path_to("message"), &json!(message), "must be non-empty if specified"));
    } else if has_line_breaks(message.trim()) {
        errors.push(FieldError::invalid(path_to("message"), &json!(message), "must not contain line breaks"));
    } else if has_line_breaks(condition.trim()) && message.trim().is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(path_to("message"), detail));
    }
    let (message_expression, field) = (string_at(rule, "/messageExpression"), string_at(rule, "/fieldPath"));
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(path_to("messageExpression"), detail));
    }
    if let Some(reason) = rule.get("reason").filter(|reason| !REASONS.iter().any(|known| *reason == known)) {
        errors.push(FieldError::unsupported(path_to("reason"), reason, &REASONS.map(|known| format!("{known:?}"))));
    }
    if !field.is_empty() && field_path(field, schema).is_none() {
        errors.push(FieldError::invalid(path_to("fieldPath"), &json!(field), "must be a valid path"));
    }
}

fn check_compilation(rule: &Value, declared: Type, within: Option<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let types = variable_types(rule, declared);
    let mut reject = |name: &str, detail: &str| {
        errors.push(FieldError::invalid_text(format!("{path}.{name}"), &format_rule(rule), detail));
    };
    let program = Program::compile(string_at(rule, "/rule"), &types);
    let mut uses_old_self = false;
    match &program {
        Err(issues) => reject("rule", &format!("compilation failed: {issues}")),
        Ok(program) if *program.output() != Type::Bool => reject("rule", "cel expression must evaluate to a bool"),
        Ok(program) => {
            uses_old_self = program.uses("oldSelf");
            let message_expression = string_at(rule, "/messageExpression");
            match Program::compile(message_expression, &types) {
                _ if message_expression.is_empty() => {}
                Err(issues) => reject("messageExpression", &format!("messageExpression compilation failed: {issues}")),
                Ok(program) if *program.output() != Type::Text => {
                    reject("messageExpression", "messageExpression must evaluate to a string");
                }
                Ok(_) => {}
            }
        }
    }
    if let Some(within) = within.filter(|_| uses_old_self) {
        let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
        errors.push(FieldError::invalid(format!("{path}.rule"), &json!(string_at(rule, "/rule")), &detail));
    }
    if let Some(optional) = rule.get("optionalOldSelf").filter(|_| !uses_old_self) {
        let detail = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(format!("{path}.optionalOldSelf"), optional, detail));
    }
}

/// Formats a rule as Go prints it.
fn format_rule(rule: &Value) -> String {
    let or_null = |name: &str| rule.get(name).unwrap_or(&Value::Null).clone();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        format_json_string(string_at(rule, "/rule")),
        format_json_string(string_at(rule, "/message")),
        format_json_string(string_at(rule, "/messageExpression")),
        or_null("reason"),
        format_json_string(string_at(rule, "/fieldPath")),
        or_null("optionalOldSelf"),
    )
}

/// Formats a JSON string as Go does, which escapes the special characters of HTML.
fn format_json_string(text: &str) -> String {
    json!(text).to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
