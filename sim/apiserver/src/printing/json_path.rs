//! JSONPath as printer columns use it: fields, indices, slices, wildcards, recursion and filters such as
//! `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Left out on purpose: unions of fields and functions. An invalid path selects nothing.

use std::cmp::Ordering;

use serde_json::{Value, json};

/// Largest number of values that a step of a path selects.
const VALUES_MAX: usize = 10_000;
/// Largest number of filters inside each other.
const FILTERS_MAX: usize = 8;

/// Step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Element of a list; negative indices count from the end.
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    Wildcard,
    /// The value and all values in it.
    Recursion,
    Filter(Filter),
}

/// Condition on the elements of a list.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    /// Operator and right side; without them, the left side must exist.
    comparison: Option<(Operator, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// Path from the element.
    Path(Vec<Step>),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Operators as they are written; longer ones come first.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// Returns the first value that a path selects.
pub(super) fn find_first(object: &Value, path: &str) -> Option<Value> {
    let path = path.trim().trim_start_matches('{').trim_end_matches('}');
    let steps = parse_path(path.strip_prefix('$').unwrap_or(path), 0)?;
    select(object, &steps).first().map(|value| Value::clone(value))
}

fn select<'a>(object: &'a Value, steps: &[Step]) -> Vec<&'a Value> {
    steps.iter().fold(vec![object], |values, step| {
        let mut selected = Vec::new();
        for value in values {
            step.select(value, &mut selected);
        }
        selected
    })
}

impl Step {
    /// Adds the values that this step selects from a value.
    fn select<'a>(&self, value: &'a Value, selected: &mut Vec<&'a Value>) {
        if selected.len() >= VALUES_MAX {
            return;
        }
        let list = value.as_array().map_or(&[] as &[Value], Vec::as_slice);
        match self {
            Self::Field(name) => selected.extend(value.get(name)),
            Self::Index(index) => selected.extend(position(*index, list.len()).and_then(|at| list.get(at))),
            Self::Slice(start, end) => {
                let bound = |bound: Option<i64>, otherwise: usize| match bound {
                    None => otherwise,
                    Some(bound) => position(bound, list.len()).unwrap_or_default().min(list.len()),
                };
                selected.extend(list.get(bound(*start, 0)..bound(*end, list.len())).unwrap_or_default());
            }
            Self::Wildcard => match value {
                Value::Object(fields) => selected.extend(fields.values()),
                _ => selected.extend(list),
            },
            Self::Recursion => {
                selected.push(value);
                let fields = value.as_object().into_iter().flat_map(serde_json::Map::values);
                for inner in fields.chain(list) {
                    self.select(inner, selected);
                }
            }
            Self::Filter(filter) => selected.extend(list.iter().filter(|element| filter.holds(element))),
        }
    }
}

/// Returns the position of an index in a list of this length.
fn position(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(position) => Some(position),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

impl Filter {
    fn holds(&self, element: &Value) -> bool {
        let Some(left) = self.left.value_in(element) else { return false };
        let Some((operator, right)) = &self.comparison else { return true };
        let Some(right) = right.value_in(element) else { return false };
        let ordering = match (&left, &right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
            (left, right) => (left == right).then_some(Ordering::Equal),
        };
        match operator {
            Operator::Equal => ordering == Some(Ordering::Equal),
            Operator::NotEqual => ordering != Some(Ordering::Equal),
            Operator::Less => ordering == Some(Ordering::Less),
            Operator::LessOrEqual => ordering.is_some_and(Ordering::is_le),
            Operator::Greater => ordering == Some(Ordering::Greater),
            Operator::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
        }
    }
}

impl Operand {
    fn value_in(&self, element: &Value) -> Option<Value> {
        match self {
            Self::Path(steps) => select(element, steps).first().map(|value| Value::clone(value)),
            Self::Literal(value) => Some(value.clone()),
        }
    }
}

/// Parses a path. `filters` is the number of filters around it.
fn parse_path(path: &str, filters: usize) -> Option<Vec<Step>> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while let Some(next) = rest.chars().next() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = find_end(inner)?;
            steps.push(parse_brackets(inner.get(..end)?.trim(), filters)?);
            rest = inner.get(end + 1..)?;
            continue;
        }
        if let Some(deeper) = rest.strip_prefix("..") {
            steps.push(Step::Recursion);
            rest = deeper;
        } else if next == '.' {
            rest = rest.get(1..)?;
        }
        if rest.starts_with('[') {
            continue;
        }
        let (name, after) = read_name(rest);
        match name.as_str() {
            "" => {}
            "*" => steps.push(Step::Wildcard),
            _ => steps.push(Step::Field(name)),
        }
        rest = after;
    }
    Some(steps)
}

/// Reads the name of a field up to the next step; a backslash makes the next character part of the name.
fn read_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => name.push(character),
        }
    }
    (name, "")
}

/// Returns the position of the bracket that ends a step.
fn find_end(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (character, quote) {
            ('\\', _) => drop(characters.next()),
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(character),
            ('[', None) => depth += 1,
            (']', None) if depth == 0 => return Some(at),
            (']', None) => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Parses the content of brackets.
fn parse_brackets(content: &str, filters: usize) -> Option<Step> {
    if content == "*" {
        return Some(Step::Wildcard);
    }
    if let Some(name) = unquote(content) {
        return Some(Step::Field(name));
    }
    if let Some(filter) = content.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return (filters < FILTERS_MAX).then(|| parse_filter(filter.trim(), filters + 1))?.map(Step::Filter);
    }
    if let Some((start, end)) = content.split_once(':') {
        let bound = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        return Some(Step::Slice(bound(start)?, bound(end)?));
    }
    content.parse().ok().map(Step::Index)
}

fn parse_filter(text: &str, filters: usize) -> Option<Filter> {
    let Some((at, (written, operator))) = find_operator(text) else {
        return Some(Filter { left: parse_operand(text, filters)?, comparison: None });
    };
    let left = parse_operand(text.get(..at)?, filters)?;
    let right = parse_operand(text.get(at + written.len()..)?, filters)?;
    Some(Filter { left, comparison: Some((operator, right)) })
}

/// Returns the first operator outside quotes and brackets, with its position.
fn find_operator(text: &str) -> Option<(usize, (&'static str, Operator))> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in text.char_indices() {
        match (character, quote) {
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(character),
            ('[', None) => depth += 1,
            (']', None) => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                let here = OPERATORS.into_iter().find(|(written, _)| text[at..].starts_with(written));
                if let Some(operator) = here {
                    return Some((at, operator));
                }
            }
            _ => {}
        }
    }
    None
}

fn parse_operand(text: &str, filters: usize) -> Option<Operand> {
    let text = text.trim();
    if let Some(path) = text.strip_prefix('@') {
        return parse_path(path, filters).map(Operand::Path);
    }
    if let Some(text) = unquote(text) {
        return Some(Operand::Literal(json!(text)));
    }
    let literal: Value = serde_json::from_str(text).ok()?;
    (literal.is_number() || literal.is_boolean()).then_some(Operand::Literal(literal))
}

/// Returns a text in quotes without them.
fn unquote(text: &str) -> Option<String> {
    let inner = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))?;
    let mut plain = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_select_the_first_value() {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "shop"}},
            "spec": {"hosts": ["a", "b", "c"], "deep": {"er": {"size": 3}}},
            "status": {"conditions": [
                {"type": "Synced", "status": "False", "count": 1},
                {"type": "Ready", "status": "True", "count": 2},
            ]},
        });
        let cases = [
            (".spec.hosts[0]", json!("a")),
            (".spec.hosts[-1]", json!("c")),
            (".spec.hosts[1:]", json!("b")),
            (".spec.hosts[*]", json!("a")),
            (".spec.hosts", json!(["a", "b", "c"])),
            ("{.spec.hosts[2]}", json!("c")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type == 'Ready')].status", json!("True")),
            (".status.conditions[?(@.type!='Ready')].status", json!("False")),
            (".status.conditions[?(@.count>1)].type", json!("Ready")),
            (".status.conditions[?(@.count)].type", json!("Synced")),
            (".metadata.labels.app\\.kubernetes\\.io/name", json!("shop")),
            (".metadata.labels['app\\.kubernetes\\.io/name']", json!("shop")),
            ("..size", json!(3)),
        ];
        for (path, expected) in cases {
            assert_eq!(find_first(&object, path), Some(expected), "{path}");
        }
        for path in [".spec.none", ".spec.hosts[9]", ".spec.hosts[?(@.a==)]", ".spec.hosts[", ".spec.hosts[-9]"] {
            assert_eq!(find_first(&object, path), None, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_read(path in "[.a\\[\\]?(@='\"*:<>\\\\0-9-]{0,40}") {
            let _selected = find_first(&json!({"a": [{"a": 1}, [2], "x"]}), &path);
        }
    }
}
