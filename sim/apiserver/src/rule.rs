//! Rules in CEL, as definitions and policies of admission have them.
//!
//! The library's parser is used, not its evaluation, which has no budget and walks maps in an order that differs from run
//! to run. Left out on purpose: types and their checks, times, durations, regular expressions and the libraries that
//! Kubernetes adds; a rule that needs them cannot be evaluated, and says nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use cel::Env;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use serde_json::{Value, json};

/// The longest rule that is read.
const RULE_BYTES_MAX: usize = 8 * 1024;
/// The most expressions inside of each other.
const NESTING_MAX: u16 = 24;
/// How often the parser goes on after an error.
const RECOVERIES_MAX: u32 = 1;
/// How many steps an evaluation may take.
const STEPS_MAX: usize = 100_000;

/// What names in a rule stand for.
pub(crate) type Variables<'a> = BTreeMap<&'a str, Value>;

/// What a rule says. `None` when it cannot be read or evaluated.
pub(crate) fn evaluate(rule: &str, variables: &Variables<'_>) -> Option<Value> {
    if rule.len() > RULE_BYTES_MAX {
        return None;
    }
    let parser = Env::default().parser().enable_optional_syntax(false);
    let parser = parser.max_recursion_depth(NESTING_MAX).error_recovery_limit(RECOVERIES_MAX);
    let (expression, _) = parser.parse_with_source_info(rule).ok()?;
    let names = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Evaluation { names, steps: 0 }.value(&expression)
}

struct Evaluation {
    names: Vec<(String, Value)>,
    steps: usize,
}

impl Evaluation {
    fn value(&mut self, expression: &IdedExpr) -> Option<Value> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return None;
        }
        match &expression.expr {
            Expr::Literal(literal) => literal_value(literal),
            Expr::Ident(name) => {
                self.names.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            }
            Expr::Select(select) => self.value(&select.operand)?.get(&select.field).cloned(),
            Expr::List(list) => {
                list.elements.iter().map(|element| self.value(element)).collect::<Option<_>>().map(Value::Array)
            }
            Expr::Call(call) => self.call(call),
            Expr::Map(_) | Expr::Struct(_) | Expr::Comprehension(_) | Expr::Unspecified => None,
        }
    }

    fn flag(&mut self, expression: &IdedExpr) -> Option<bool> {
        self.value(expression)?.as_bool()
    }

    fn call(&mut self, call: &CallExpr) -> Option<Value> {
        match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            // Either side may decide, whatever comes of the other.
            ("_&&_", None, [left, right]) => match (self.flag(left), self.flag(right)) {
                (Some(false), _) | (_, Some(false)) => Some(json!(false)),
                (Some(true), Some(true)) => Some(json!(true)),
                _ => None,
            },
            ("_||_", None, [left, right]) => match (self.flag(left), self.flag(right)) {
                (Some(true), _) | (_, Some(true)) => Some(json!(true)),
                (Some(false), Some(false)) => Some(json!(false)),
                _ => None,
            },
            ("_?_:_", None, [condition, then, otherwise]) => {
                if self.flag(condition)? {
                    self.value(then)
                } else {
                    self.value(otherwise)
                }
            }
            ("has", None, [IdedExpr { expr: Expr::Select(select), .. }]) => {
                Some(json!(self.value(&select.operand)?.get(&select.field).is_some()))
            }
            (name @ ("all" | "exists" | "filter" | "map"), Some(over), [first, body]) => {
                let Expr::Ident(variable) = &first.expr else { return None };
                self.each(name, over, variable, body)
            }
            (name, target, arguments) => {
                let all: Option<Vec<Value>> =
                    target.into_iter().chain(arguments).map(|argument| self.value(argument)).collect();
                function(name, &all?)
            }
        }
    }

    fn each(&mut self, name: &str, over: &IdedExpr, variable: &str, body: &IdedExpr) -> Option<Value> {
        let elements: Vec<Value> = match self.value(over)? {
            Value::Array(list) => list,
            Value::Object(map) => map.keys().map(|key| json!(key)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        let mut results = Vec::with_capacity(elements.len());
        for element in elements {
            self.names.push((variable.to_owned(), element.clone()));
            let result = self.value(body);
            self.names.pop();
            results.push((element, result?));
        }
        let holds = |(_, result): &(Value, Value)| *result == json!(true);
        Some(match name {
            "all" => json!(results.iter().all(holds)),
            "exists" => json!(results.iter().any(holds)),
            "filter" => results.into_iter().filter(holds).map(|(element, _)| element).collect(),
            _ => results.into_iter().map(|(_, result)| result).collect(),
        })
    }
}

fn literal_value(literal: &LiteralValue) -> Option<Value> {
    match literal {
        LiteralValue::Null => Some(Value::Null),
        LiteralValue::Boolean(value) => Some(json!(*value.inner())),
        LiteralValue::Int(value) => Some(json!(*value.inner())),
        LiteralValue::UInt(value) => Some(json!(*value.inner())),
        LiteralValue::Double(value) => Some(json!(*value.inner())),
        LiteralValue::String(value) => Some(json!(value.inner())),
        LiteralValue::Bytes(_) => None,
    }
}

fn function(name: &str, arguments: &[Value]) -> Option<Value> {
    match (name, arguments) {
        ("_==_", [left, right]) => Some(json!(equal(left, right))),
        ("_!=_", [left, right]) => Some(json!(!equal(left, right))),
        ("_<_", [left, right]) => Some(json!(order(left, right)? == Ordering::Less)),
        ("_<=_", [left, right]) => Some(json!(order(left, right)? != Ordering::Greater)),
        ("_>_", [left, right]) => Some(json!(order(left, right)? == Ordering::Greater)),
        ("_>=_", [left, right]) => Some(json!(order(left, right)? != Ordering::Less)),
        ("!_", [value]) => Some(json!(!value.as_bool()?)),
        ("-_", [value]) => Some(json!(value.as_i64()?.checked_neg()?)),
        ("@in", [element, Value::Array(list)]) => Some(json!(list.iter().any(|other| equal(element, other)))),
        ("@in", [Value::String(key), Value::Object(map)]) => Some(json!(map.contains_key(key))),
        ("_[_]", [Value::Array(list), index]) => list.get(usize::try_from(index.as_i64()?).ok()?).cloned(),
        ("_[_]", [Value::Object(map), Value::String(key)]) => map.get(key).cloned(),
        ("_+_", [Value::String(left), Value::String(right)]) => Some(json!(format!("{left}{right}"))),
        ("_+_", [Value::Array(left), Value::Array(right)]) => Some(json!([left.as_slice(), right].concat())),
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [left, right]) => arithmetic(name, left.as_i64()?, right.as_i64()?),
        ("size", [value]) => Some(json!(match value {
            Value::String(text) => text.chars().count(),
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => return None,
        })),
        ("startsWith", [Value::String(text), Value::String(part)]) => Some(json!(text.starts_with(part.as_str()))),
        ("endsWith", [Value::String(text), Value::String(part)]) => Some(json!(text.ends_with(part.as_str()))),
        ("contains", [Value::String(text), Value::String(part)]) => Some(json!(text.contains(part.as_str()))),
        ("string", [value]) => Some(json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned))),
        ("int", [Value::String(text)]) => text.parse::<i64>().ok().map(Value::from),
        ("int", [value]) => value.as_i64().map(Value::from),
        _ => None,
    }
}

fn arithmetic(name: &str, left: i64, right: i64) -> Option<Value> {
    let result = match name {
        "_+_" => left.checked_add(right),
        "_-_" => left.checked_sub(right),
        "_*_" => left.checked_mul(right),
        "_/_" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    result.map(Value::from)
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(_), Some(_)) => order(left, right) == Some(Ordering::Equal),
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => Some(one.cmp(&other)),
            _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(rule: &str) -> Option<Value> {
        let object = json!({"size": 3, "minimum": 2, "color": "black", "tags": ["a", "b"], "map": {"k": 1}});
        evaluate(rule, &Variables::from([("self", object)]))
    }

    #[test]
    fn rules_are_evaluated() {
        for (rule, expected) in [
            ("self.minimum <= self.size", json!(true)),
            ("!has(self.colour) || self.colour != 'black'", json!(true)),
            ("'not ' + self.color", json!("not black")),
            ("self.tags.all(tag, size(tag) == 1) && 'k' in self.map", json!(true)),
            ("self.tags.exists(tag, tag == 'c') ? 1 : 2 + 3 * 4", json!(14)),
            ("self.tags[1].startsWith('b') && !('c' in self.tags)", json!(true)),
        ] {
            assert_eq!(says(rule), Some(expected), "{rule}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_says_nothing() {
        for rule in ["self.", "self.none", "unknown(1)", "1 / 0", "9223372036854775807 + 1", "other"] {
            assert_eq!(says(rule), None, "{rule}");
        }
    }
}
