//! Rules that a definition declares: whether they can be compiled, and what goes with them.

use serde_json::{Value, json};
use sindri_cel::{Program, Shape, Type};

use super::cel_rules::{declarations, field_path, names};
use super::structural::{flag, properties};
use crate::object::field_error::FieldError;
use crate::object::fields::text;

/// The reasons that a rule may give.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Everything that is wrong with the rules of a schema and of what is below it.
pub(super) fn validate(schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let mut found = Found::default();
    visit(schema, true, None, place, &mut found);
    // What is wrong about the form is told before what is wrong about the meaning.
    errors.extend(found.form);
    errors.extend(found.meaning);
}

#[derive(Default)]
struct Found {
    form: Vec<FieldError>,
    meaning: Vec<FieldError>,
}

/// `within` is the list, if any, whose elements cannot be told apart.
fn visit(schema: &Value, is_root: bool, within: Option<&str>, place: &str, found: &mut Found) {
    let below = |schema: &Value, within: Option<&str>, place: &str, found: &mut Found| {
        visit(schema, flag(schema, "x-kubernetes-embedded-resource"), within, place, found);
    };
    let before = found.form.len();
    for (_, schema, place) in properties(schema, place) {
        below(schema, within, &place, found);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        below(values, within, &format!("{place}.additionalProperties"), found);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        let is_told_apart = text(schema, "/x-kubernetes-list-type") == "map";
        let within = if is_told_apart { within } else { within.or(Some(place)) };
        below(items, within, &format!("{place}.items"), found);
    }
    let rules = declarations(schema);
    let at = |index: usize| format!("{place}.x-kubernetes-validations[{index}]");
    for (index, rule) in rules.iter().enumerate() {
        form(rule, schema, &at(index), &mut found.form);
    }
    if rules.is_empty() || found.form.len() > before {
        return;
    }
    let Some(declared) = Shape::of(schema, is_root).declared() else {
        let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        let field = format!("{place}.x-kubernetes-validations");
        found.meaning.push(FieldError { reason: "InternalError", field, message: format!("Internal error: {why}") });
        return;
    };
    for (index, rule) in rules.iter().enumerate() {
        meaning(rule, declared.clone(), within, &at(index), &mut found.meaning);
    }
}

/// What goes with a rule: its words, its reason, its path.
fn form(rule: &Value, schema: &Value, place: &str, errors: &mut Vec<FieldError>) {
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let (condition, message) = (text(rule, "/rule"), text(rule, "/message"));
    let at = |name: &str| format!("{place}.{name}");
    if condition.trim().is_empty() {
        errors.push(FieldError::required(at("rule"), "rule is not specified"));
    } else if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(at("message"), &json!(message), "must be non-empty if specified"));
    } else if has_lines(message.trim()) {
        errors.push(FieldError::invalid(at("message"), &json!(message), "must not contain line breaks"));
    } else if has_lines(condition.trim()) && message.trim().is_empty() {
        let why = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(at("message"), why));
    }
    let (finder, path) = (text(rule, "/messageExpression"), text(rule, "/fieldPath"));
    if !finder.is_empty() && finder.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(at("messageExpression"), why));
    }
    if let Some(reason) = rule.get("reason").filter(|reason| !REASONS.iter().any(|known| *reason == known)) {
        errors.push(FieldError::unsupported(at("reason"), reason, &REASONS.map(|known| format!("{known:?}"))));
    }
    if !path.is_empty() && field_path(path, schema).is_none() {
        errors.push(FieldError::invalid(at("fieldPath"), &json!(path), "must be a valid path"));
    }
}

fn meaning(rule: &Value, declared: Type, within: Option<&str>, place: &str, errors: &mut Vec<FieldError>) {
    let names = names(rule, declared);
    let mut refuse = |name: &str, why: &str| {
        errors.push(FieldError::invalid_text(format!("{place}.{name}"), &shown(rule), why));
    };
    let program = Program::compile(text(rule, "/rule"), &names);
    let mut is_about_change = false;
    match &program {
        Err(issues) => refuse("rule", &format!("compilation failed: {issues}")),
        Ok(program) if *program.output() != Type::Bool => refuse("rule", "cel expression must evaluate to a bool"),
        Ok(program) => {
            is_about_change = program.uses("oldSelf");
            let finder = text(rule, "/messageExpression");
            match Program::compile(finder, &names) {
                _ if finder.is_empty() => {}
                Err(issues) => refuse("messageExpression", &format!("messageExpression compilation failed: {issues}")),
                Ok(finder) if *finder.output() != Type::Text => {
                    refuse("messageExpression", "messageExpression must evaluate to a string");
                }
                Ok(_) => {}
            }
        }
    }
    if let Some(within) = within.filter(|_| is_about_change) {
        let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
        errors.push(FieldError::invalid(format!("{place}.rule"), &json!(text(rule, "/rule")), &why));
    }
    if let Some(optional) = rule.get("optionalOldSelf").filter(|_| !is_about_change) {
        let why = "may not be set if oldSelf is not used in rule";
        errors.push(FieldError::invalid(format!("{place}.optionalOldSelf"), optional, why));
    }
}

/// A rule as Go prints it.
fn shown(rule: &Value) -> String {
    let or_null = |name: &str| rule.get(name).unwrap_or(&Value::Null).clone();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        go(text(rule, "/rule")),
        go(text(rule, "/message")),
        go(text(rule, "/messageExpression")),
        or_null("reason"),
        go(text(rule, "/fieldPath")),
        or_null("optionalOldSelf"),
    )
}

/// A text in JSON as Go writes it: some signs are escaped because they mean something in HTML.
fn go(text: &str) -> String {
    json!(text).to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}
