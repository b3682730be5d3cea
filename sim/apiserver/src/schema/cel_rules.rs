//! The CEL validation rules of a schema: compiled once per CRD, evaluated for each write.
//!
//! A transition rule is evaluated only where the old value is known: not for a new object, and not for the elements of a
//! list without keys. An unchanged value may stay invalid: it only causes a warning (ratcheting).

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sindri_cel::{Cel, EvaluationError, Program, Shape, Type};

use crate::object::field_error::FieldError;

/// Maximum length of a message from a rule's `messageExpression`.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// Path of the object itself in errors.
const ROOT: &str = "<nil>";

/// Compiled rules of a schema and of its subschemas.
#[derive(Debug)]
pub(crate) struct ValidationRules {
    own: Vec<ValidationRule>,
    shape: Shape,
    /// `type` of the schema.
    schema_type: String,
    properties: BTreeMap<String, ValidationRules>,
    values: Option<Box<ValidationRules>>,
    items: Option<Box<ValidationRules>>,
    /// Fields that identify the elements of a keyed list.
    keys: Option<Vec<String>>,
}

/// One rule.
#[derive(Debug)]
struct ValidationRule {
    program: Program,
    /// Compiled `messageExpression`.
    message_expression: Option<Program>,
    text: String,
    message: String,
    reason: String,
    field: String,
    is_optional: bool,
}

/// Result of the evaluation of rules.
#[derive(Default)]
pub(crate) struct RuleViolations {
    pub(crate) errors: Vec<FieldError>,
    /// Violations in values that did not change.
    pub(crate) warnings: Vec<String>,
}

/// A value with its old value, if that is known, and true in `is_same` if it or an enclosing value did not change.
#[derive(Clone, Copy)]
struct ValueChange<'a> {
    value: &'a Value,
    before: Option<&'a Value>,
    is_same: bool,
}

impl ValidationRules {
    /// Compiles the rules of a schema; `None` if it has none. Rules that do not compile are skipped: a CRD with such rules is
    /// rejected.
    pub(crate) fn from_schema(schema: &Value, is_root: bool) -> Option<Self> {
        let shape = Shape::from_schema(schema, is_root);
        let declared = Type::from_shape(&shape);
        let own: Vec<ValidationRule> = declared_rules(schema)
            .iter()
            .filter_map(|rule| ValidationRule::compile(rule, schema, declared.clone()?))
            .collect();
        let below = |schema: &Value| Self::from_schema(schema, is_embedded(schema));
        let properties: BTreeMap<String, Self> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.clone(), below(schema)?)))
            .collect();
        let values = schema.get("additionalProperties").filter(|schema| schema.is_object()).and_then(below);
        let items = schema.get("items").and_then(below);
        if own.is_empty() && properties.is_empty() && values.is_none() && items.is_none() {
            return None;
        }
        Some(Self {
            own,
            shape,
            schema_type: text(schema, "type").to_owned(),
            properties,
            values: values.map(Box::new),
            items: items.map(Box::new),
            keys: list_keys(schema),
        })
    }

    /// Evaluates the rules for an object; transition rules need the old object.
    pub(crate) fn check(&self, live: Option<&Value>, object: &Value) -> RuleViolations {
        let mut violations = RuleViolations::default();
        let change = ValueChange { value: object, before: live, is_same: live == Some(object) };
        self.visit(change, "", &mut violations);
        violations
    }

    fn visit(&self, change: ValueChange<'_>, path: &str, violations: &mut RuleViolations) {
        if change.value.is_null() {
            return;
        }
        for rule in &self.own {
            rule.check(self, change, path, violations);
        }
        match change.value {
            Value::Object(map) => {
                for (name, value) in map {
                    let before = change.before.and_then(|before| before.get(name));
                    let change = change.descend(value, before);
                    if let Some(rules) = &self.values {
                        rules.visit(change, &format!("{path}[{name}]"), violations);
                    }
                    if let Some(rules) = self.properties.get(name) {
                        rules.visit(change, &join(path, name), violations);
                    }
                }
            }
            Value::Array(list) => {
                let Some(rules) = &self.items else { return };
                for (index, value) in list.iter().enumerate() {
                    let before = find_correlated(self.keys.as_deref(), change.before, value);
                    rules.visit(change.descend(value, before), &format!("{path}[{index}]"), violations);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

impl<'a> ValueChange<'a> {
    fn descend(self, value: &'a Value, before: Option<&'a Value>) -> Self {
        let before = before.filter(|before| !before.is_null());
        Self { value, before, is_same: before.map_or(self.is_same, |before| before == value) }
    }
}

/// Returns the old element with the same keys, if the list has keys.
pub(super) fn find_correlated<'a>(
    keys: Option<&[String]>,
    before: Option<&'a Value>,
    element: &Value,
) -> Option<&'a Value> {
    let keys = keys?;
    let is_same = |other: &&Value| keys.iter().all(|key| other.get(key) == element.get(key));
    before?.as_array()?.iter().find(is_same)
}

/// Returns the keys of a keyed list.
pub(super) fn list_keys(schema: &Value) -> Option<Vec<String>> {
    if text(schema, "x-kubernetes-list-type") != "map" {
        return None;
    }
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
    Some(keys.filter_map(Value::as_str).map(str::to_owned).collect())
}

fn is_embedded(schema: &Value) -> bool {
    schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
}

/// Returns the rules that a schema declares for itself.
pub(super) fn declared_rules(schema: &Value) -> &[Value] {
    schema.get("x-kubernetes-validations").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the types of the variables of a rule.
pub(super) fn variable_types(rule: &Value, declared: Type) -> [(&'static str, Type); 2] {
    let before = if is_optional(rule) { Type::Optional(Box::new(declared.clone())) } else { declared.clone() };
    [("self", declared), ("oldSelf", before)]
}

fn is_optional(rule: &Value) -> bool {
    rule.get("optionalOldSelf") == Some(&Value::Bool(true))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

impl ValidationRule {
    fn compile(rule: &Value, schema: &Value, declared: Type) -> Option<Self> {
        let types = variable_types(rule, declared);
        let message_expression = Some(text(rule, "messageExpression")).filter(|text| !text.is_empty());
        Some(Self {
            program: Program::compile(text(rule, "rule"), &types).ok()?,
            message_expression: message_expression.and_then(|text| Program::compile(text, &types).ok()),
            text: text(rule, "rule").trim().to_owned(),
            message: text(rule, "message").trim().to_owned(),
            reason: text(rule, "reason").to_owned(),
            field: field_path(text(rule, "fieldPath"), schema).unwrap_or_default(),
            is_optional: is_optional(rule),
        })
    }

    fn check(&self, rules: &ValidationRules, change: ValueChange<'_>, path: &str, violations: &mut RuleViolations) {
        let uses_old_self = self.program.uses("oldSelf");
        if uses_old_self && change.before.is_none() && !self.is_optional {
            return;
        }
        let error = match self.program.evaluate(&variables(rules, change, self.is_optional)) {
            Ok(Cel::Bool(true)) => return,
            Ok(_) => self.violation(rules, change, path),
            Err(failure) => {
                let field = if path.is_empty() { ROOT } else { path };
                violations.errors.push(FieldError::invalid(
                    field,
                    &Value::from(rules.schema_type.as_str()),
                    &self.failure_detail(&failure),
                ));
                return;
            }
        };
        if change.is_same && !uses_old_self {
            violations.warnings.push(error.full());
        } else {
            violations.errors.push(error);
        }
    }

    fn name(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    /// Returns the error detail of a rule whose evaluation failed.
    fn failure_detail(&self, failure: &EvaluationError) -> String {
        match failure {
            EvaluationError::Failed { message, .. } if message.starts_with("no such overload") => format!(
                "'{message}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                self.name()
            ),
            EvaluationError::Failed { message, .. } => format!("{message} evaluating rule: {}", self.name()),
            EvaluationError::BudgetExceeded => format!(
                "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                self.name()
            ),
        }
    }

    fn violation(&self, rules: &ValidationRules, change: ValueChange<'_>, path: &str) -> FieldError {
        let detail = self.dynamic_message(rules, change).unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed rule: {}", self.text),
            message => message.to_owned(),
        });
        let field = match (path, self.field.as_str()) {
            ("", "") => ROOT.to_owned(),
            (path, "") => path.to_owned(),
            (path, below) => join(path, below),
        };
        // Objects and lists are not printed.
        let is_printed = !matches!(rules.schema_type.as_str(), "object" | "array");
        match self.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(field, &detail),
            "FieldValueRequired" => FieldError::required(field, &detail),
            "FieldValueDuplicate" if is_printed => FieldError::duplicate(field, &change.value.to_string()),
            "FieldValueDuplicate" => {
                FieldError { reason: "FieldValueDuplicate", field, message: "Duplicate value".to_owned() }
            }
            _ if is_printed => FieldError::invalid(field, change.value, &detail),
            _ => FieldError { reason: "FieldValueInvalid", field, message: format!("Invalid value: {detail}") },
        }
    }

    /// Returns the message of the rule's `messageExpression`, if it is valid.
    fn dynamic_message(&self, rules: &ValidationRules, change: ValueChange<'_>) -> Option<String> {
        let variables = variables(rules, change, false);
        let value = self.message_expression.as_ref()?.evaluate(&variables).ok()?;
        let message = value.as_text()?.trim();
        let is_valid = !message.is_empty() && !message.contains('\n') && message.len() <= MESSAGE_BYTES_MAX;
        is_valid.then(|| message.to_owned())
    }
}

fn variables<'a>(
    rules: &'a ValidationRules,
    change: ValueChange<'a>,
    is_optional: bool,
) -> Vec<(&'static str, Cel<'a>)> {
    let before = change.before.map(|before| Cel::with_shape(before, &rules.shape));
    let mut variables = vec![("self", Cel::with_shape(change.value, &rules.shape))];
    if is_optional {
        variables.push(("oldSelf", before.map_or(Cel::Optional(None), Cel::some)));
    } else {
        variables.extend(before.map(|before| ("oldSelf", before)));
    }
    variables
}

/// Converts a field path (`.a.b` or `['a']`) to the form of errors. `None` if the schema has no such field.
pub(super) fn field_path(path: &str, schema: &Value) -> Option<String> {
    let (mut converted, mut schema, mut rest) = (String::new(), schema, path);
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix("['") {
            Some(inside) => {
                let (name, after) = inside.split_once("']")?;
                (name, after)
            }
            None => {
                let inside = rest.strip_prefix('.')?;
                inside.split_at(inside.find(['.', '[', ']']).unwrap_or(inside.len()))
            }
        };
        let properties = schema.get("properties").and_then(Value::as_object).filter(|map: &&Map<_, _>| !map.is_empty());
        match properties {
            Some(properties) => {
                schema = properties.get(name)?;
                converted = join(&converted, name);
            }
            None => {
                schema = schema.get("additionalProperties").filter(|values| values.is_object())?;
                converted.push_str(&format!("[{name}]"));
            }
        }
        rest = after;
    }
    Some(converted)
}
