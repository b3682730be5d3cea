//! The rules in CEL that a schema carries: compiled once for each definition, evaluated for each write.
//!
//! A rule about a change is evaluated only where what was there before can be told: not for a new object, and not for the
//! elements of a list whose elements have no keys. What did not change may stay as wrong as it is: its author is warned.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sindri_cel::{Cel, Failure, Program, Shape, Type};

use crate::object::field_error::FieldError;

/// The longest words that a rule may find for itself.
const WORDS_BYTES_MAX: usize = 5 * 1024;
/// The path of the object itself.
const ROOT: &str = "<nil>";

/// The rules of a schema and of everything below it.
#[derive(Debug)]
pub(crate) struct Rules {
    own: Vec<Rule>,
    shape: Shape,
    /// The type that the schema names.
    kind: String,
    properties: BTreeMap<String, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
    /// What tells the elements of a list apart.
    keys: Option<Vec<String>>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    program: Program,
    /// What finds the words.
    finder: Option<Program>,
    text: String,
    message: String,
    reason: String,
    field: String,
    is_optional: bool,
}

/// What rules found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) errors: Vec<FieldError>,
    /// What is wrong and was before.
    pub(crate) warnings: Vec<String>,
}

/// A value, the one before it as far as it can be told, and whether it or what it is part of did not change.
#[derive(Clone, Copy)]
struct Change<'a> {
    value: &'a Value,
    before: Option<&'a Value>,
    is_same: bool,
}

impl Rules {
    /// The rules of a schema; `None` if it has none anywhere. A rule that cannot be compiled is no rule: the definition
    /// was refused for it.
    pub(crate) fn of(schema: &Value, is_root: bool) -> Option<Self> {
        let shape = Shape::of(schema, is_root);
        let declared = shape.declared();
        let own: Vec<Rule> =
            declarations(schema).iter().filter_map(|rule| Rule::of(rule, schema, declared.clone()?)).collect();
        let below = |schema: &Value| Self::of(schema, is_embedded(schema));
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
            kind: text(schema, "type").to_owned(),
            properties,
            values: values.map(Box::new),
            items: items.map(Box::new),
            keys: list_keys(schema),
        })
    }

    /// What is wrong with an object; rules about a change need the one before it.
    pub(crate) fn check(&self, live: Option<&Value>, object: &Value) -> Found {
        let mut found = Found::default();
        let change = Change { value: object, before: live, is_same: live == Some(object) };
        self.visit(change, "", &mut found);
        found
    }

    fn visit(&self, change: Change<'_>, path: &str, found: &mut Found) {
        if change.value.is_null() {
            return;
        }
        for rule in &self.own {
            rule.check(self, change, path, found);
        }
        match change.value {
            Value::Object(map) => {
                for (name, value) in map {
                    let before = change.before.and_then(|before| before.get(name));
                    let change = change.below(value, before);
                    if let Some(rules) = &self.values {
                        rules.visit(change, &format!("{path}[{name}]"), found);
                    }
                    if let Some(rules) = self.properties.get(name) {
                        rules.visit(change, &join(path, name), found);
                    }
                }
            }
            Value::Array(list) => {
                let Some(rules) = &self.items else { return };
                for (index, value) in list.iter().enumerate() {
                    let before = correlated(self.keys.as_deref(), change.before, value);
                    rules.visit(change.below(value, before), &format!("{path}[{index}]"), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

impl<'a> Change<'a> {
    fn below(self, value: &'a Value, before: Option<&'a Value>) -> Self {
        let before = before.filter(|before| !before.is_null());
        Self { value, before, is_same: before.map_or(self.is_same, |before| before == value) }
    }
}

/// The element with the same keys, of a list whose elements have some.
pub(super) fn correlated<'a>(keys: Option<&[String]>, before: Option<&'a Value>, element: &Value) -> Option<&'a Value> {
    let keys = keys?;
    let is_same = |other: &&Value| keys.iter().all(|key| other.get(key) == element.get(key));
    before?.as_array()?.iter().find(is_same)
}

/// The keys of a list, if it has some.
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

/// The rules that a schema declares for itself.
pub(super) fn declarations(schema: &Value) -> &[Value] {
    schema.get("x-kubernetes-validations").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What the names in a rule are.
pub(super) fn names(rule: &Value, declared: Type) -> [(&'static str, Type); 2] {
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

impl Rule {
    fn of(rule: &Value, schema: &Value, declared: Type) -> Option<Self> {
        let names = names(rule, declared);
        let finder = Some(text(rule, "messageExpression")).filter(|text| !text.is_empty());
        Some(Self {
            program: Program::compile(text(rule, "rule"), &names).ok()?,
            finder: finder.and_then(|text| Program::compile(text, &names).ok()),
            text: text(rule, "rule").trim().to_owned(),
            message: text(rule, "message").trim().to_owned(),
            reason: text(rule, "reason").to_owned(),
            field: field_path(text(rule, "fieldPath"), schema).unwrap_or_default(),
            is_optional: is_optional(rule),
        })
    }

    fn check(&self, rules: &Rules, change: Change<'_>, path: &str, found: &mut Found) {
        let about_change = self.program.uses("oldSelf");
        if about_change && change.before.is_none() && !self.is_optional {
            return;
        }
        let error = match self.program.evaluate(&variables(rules, change, self.is_optional)) {
            Ok(Cel::Bool(true)) => return,
            Ok(_) => self.broken(rules, change, path),
            Err(failure) => {
                let at = if path.is_empty() { ROOT } else { path };
                found.errors.push(FieldError::invalid(at, &Value::from(rules.kind.as_str()), &self.failed(&failure)));
                return;
            }
        };
        if change.is_same && !about_change {
            found.warnings.push(error.full());
        } else {
            found.errors.push(error);
        }
    }

    fn name(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    /// What is said of a rule that has no value.
    fn failed(&self, failure: &Failure) -> String {
        match failure {
            Failure::Wrong { said, .. } if said.starts_with("no such overload") => format!(
                "'{said}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                self.name()
            ),
            Failure::Wrong { said, .. } => format!("{said} evaluating rule: {}", self.name()),
            Failure::Exhausted => format!(
                "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                self.name()
            ),
        }
    }

    fn broken(&self, rules: &Rules, change: Change<'_>, path: &str) -> FieldError {
        let why = self.words(rules, change).unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed rule: {}", self.text),
            message => message.to_owned(),
        });
        let field = match (path, self.field.as_str()) {
            ("", "") => ROOT.to_owned(),
            (path, "") => path.to_owned(),
            (path, below) => join(path, below),
        };
        // A structure is not shown.
        let shown = !matches!(rules.kind.as_str(), "object" | "array");
        match self.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(field, &why),
            "FieldValueRequired" => FieldError::required(field, &why),
            "FieldValueDuplicate" if shown => FieldError::duplicate(field, &change.value.to_string()),
            "FieldValueDuplicate" => {
                FieldError { reason: "FieldValueDuplicate", field, message: "Duplicate value".to_owned() }
            }
            _ if shown => FieldError::invalid(field, change.value, &why),
            _ => FieldError { reason: "FieldValueInvalid", field, message: format!("Invalid value: {why}") },
        }
    }

    /// The words that the rule finds itself, if they are some.
    fn words(&self, rules: &Rules, change: Change<'_>) -> Option<String> {
        let variables = variables(rules, change, false);
        let said = self.finder.as_ref()?.evaluate(&variables).ok()?;
        let said = said.as_text()?.trim();
        let fits = !said.is_empty() && !said.contains('\n') && said.len() <= WORDS_BYTES_MAX;
        fits.then(|| said.to_owned())
    }
}

fn variables<'a>(rules: &'a Rules, change: Change<'a>, is_optional: bool) -> Vec<(&'static str, Cel<'a>)> {
    let before = change.before.map(|before| Cel::shaped(before, &rules.shape));
    let mut variables = vec![("self", Cel::shaped(change.value, &rules.shape))];
    if is_optional {
        variables.push(("oldSelf", before.map_or(Cel::Optional(None), Cel::some)));
    } else {
        variables.extend(before.map(|before| ("oldSelf", before)));
    }
    variables
}

/// A path as errors write it, if it leads to a field of the schema: `.a.b` and `['a']`.
pub(super) fn field_path(path: &str, schema: &Value) -> Option<String> {
    let (mut written, mut schema, mut rest) = (String::new(), schema, path);
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
                written = join(&written, name);
            }
            None => {
                schema = schema.get("additionalProperties").filter(|values| values.is_object())?;
                written.push_str(&format!("[{name}]"));
            }
        }
        rest = after;
    }
    Some(written)
}
