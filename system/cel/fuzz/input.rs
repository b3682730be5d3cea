//! The meaning of a fuzzed input, and the properties that are checked. The tests of the library run it on `regressions/`.

use serde_json::{Value, json};
use sindri_cel::{Cel, Pattern, Program, Quantity, Shape, Type, time};

/// Parts of rules. An input of tokens is a valid rule far more often than one of characters.
pub const TOKENS: [&str; 128] = [
    "self",
    "self.text",
    "self.size",
    "self.share",
    "self.on",
    "self.list",
    "self.map",
    "self.parts",
    "self.at",
    "self.span",
    "self.data",
    "self.texts",
    "x",
    "y",
    ".id",
    ".count",
    ".missing",
    ".all(x,",
    ".exists(x,",
    ".map(x,",
    ".filter(x,",
    ".exists_one(x,",
    ".transformMap(x,y,",
    ".transformList(x,y,",
    ".all(x,y,",
    "has(",
    "size(",
    "int(",
    "uint(",
    "double(",
    "string(",
    "bytes(",
    "type(",
    "dyn(",
    "timestamp(",
    "duration(",
    "quantity(",
    "isQuantity(",
    "ip(",
    "isIP(",
    "cidr(",
    "url(",
    "isURL(",
    "format.named('date')",
    "optional.of(",
    "optional.none()",
    ".value()",
    ".hasValue()",
    ".or(",
    ".orValue(",
    ".optMap(x,",
    ".split(",
    ".replace(",
    ".substring(",
    ".charAt(",
    ".indexOf(",
    ".lastIndexOf(",
    ".lowerAscii()",
    ".upperAscii()",
    ".trim()",
    ".reverse()",
    ".startsWith(",
    ".endsWith(",
    ".contains(",
    ".matches(",
    ".find(",
    ".findAll(",
    ".format([",
    ".join(",
    ".sum()",
    ".min()",
    ".max()",
    ".isSorted()",
    ".sort()",
    ".distinct()",
    ".slice(",
    ".flatten(",
    ".getHours()",
    ".getFullYear()",
    ".getMilliseconds()",
    ".add(",
    ".sub(",
    ".compareTo(",
    ".asInteger()",
    ".asApproximateFloat()",
    ".sign()",
    ".isGreaterThan(",
    ".masked()",
    ".containsIP(",
    ".prefixLength()",
    ".family()",
    ".getQuery()",
    ".getHost()",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    ".?",
    "[?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    " in ",
    "'a'",
    "'%s %d'",
    "'[a-c]+'",
    "'10.0.0.0/8'",
    "'1h'",
    "'2026-01-01T00:00:00Z'",
    "'1.5Gi'",
    "9223372036854775807",
    "1",
    "2u",
    "0.5",
];

/// Longest text in which a pattern is searched.
const TEXT_BYTES_MAX: usize = 64;

/// The object of the rules.
fn object() -> Value {
    json!({
        "text": "größe", "size": 3, "share": 0.5, "on": true, "list": [3, 1, 2], "map": {"b": "2", "a": "1"},
        "parts": [{"id": "x", "count": 1}, {"id": "y"}], "at": "2026-02-03T04:05:06Z", "span": "1h5m", "data": "YQ==",
        "texts": ["b", "", "a"],
    })
}

/// Its schema.
fn schema() -> Value {
    let part = json!({"type": "object", "properties": {"id": {"type": "string"}, "count": {"type": "integer"}}});
    json!({"type": "object", "properties": {
        "text": {"type": "string"}, "size": {"type": "integer"}, "share": {"type": "number"}, "on": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "parts": {"type": "array", "items": part, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        "at": {"type": "string", "format": "date-time"}, "span": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte"},
        "texts": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    }})
}

/// Checks one input: its first byte selects how the others are read.
pub fn check(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => check_rule(&rest.iter().map(|byte| TOKENS[usize::from(*byte) % TOKENS.len()]).collect::<String>()),
        1 => check_rule(&String::from_utf8_lossy(rest)),
        2 => check_pattern(&String::from_utf8_lossy(rest)),
        _ => check_literals(&String::from_utf8_lossy(rest)),
    }
}

/// A rule is evaluated with a typed and with an untyped object, each twice with the same result; the result of a rule
/// without `dyn` has the static type. With it the checker of Kubernetes, and so this one, takes the first of several matching
/// overloads: `dyn(texts).distinct().max()` is a `bool` for it.
fn check_rule(rule: &str) {
    let (object, shape) = (object(), Shape::from_schema(&schema(), false));
    let typed = Type::from_shape(&shape).expect("the schema hides nothing");
    for (declared, value) in [(Type::Dyn, Cel::from_json(&object)), (typed, Cel::with_shape(&object, &shape))] {
        let is_typed = declared != Type::Dyn && !rule.contains("dyn(");
        let Ok(program) = Program::compile(rule, &[("self", declared)]) else { continue };
        let evaluate = || match program.evaluate(&[("self", value.clone())]) {
            Ok(result) => {
                if let Some(expected) = type_name(program.output()).filter(|_| is_typed) {
                    assert_eq!(result.type_name(), expected, "the type of {rule}");
                }
                format!("{} {:?}", result.type_name(), result.as_text())
            }
            Err(error) => format!("{error} {}", error.redacted()),
        };
        assert_eq!(evaluate(), evaluate(), "two results of {rule}");
    }
}

/// Returns the name of the values of a type; `None` if values of several types have it.
fn type_name(output: &Type) -> Option<&'static str> {
    match output {
        Type::Null => Some("null_type"),
        Type::Bool => Some("bool"),
        Type::Int => Some("int"),
        Type::Uint => Some("uint"),
        Type::Double => Some("double"),
        Type::Text => Some("string"),
        Type::Bytes => Some("bytes"),
        Type::List(_) => Some("list"),
        Type::Map(..) => Some("map"),
        Type::Optional(_) => Some("optional_type"),
        Type::Timestamp => Some("google.protobuf.Timestamp"),
        Type::Duration => Some("google.protobuf.Duration"),
        Type::Type | Type::Object(_) | Type::Opaque(_) | Type::Dyn | Type::Error | Type::Variable(_) => None,
    }
}

/// A pattern, and the text after the first space.
fn check_pattern(input: &str) {
    let (pattern, text) = input.split_once(' ').unwrap_or((input, "größe abc 123"));
    let text: String = text.chars().take(TEXT_BYTES_MAX).collect();
    if let Ok(compiled) = Pattern::new(pattern) {
        assert_eq!(compiled.is_in(&text), compiled.is_in(&text));
        let grouped = Pattern::new(&format!("(?:{pattern})"));
        if let Ok(grouped) = grouped {
            assert_eq!(compiled.is_in(&text), grouped.is_in(&text), "a group changes the meaning of {pattern}");
        }
    }
}

/// Times, durations and quantities; a quantity is read as it is written.
fn check_literals(text: &str) {
    let _ = (time::timestamp(text), time::date(text), time::duration(text), time::schema_duration(text));
    let _ = time::schema_timestamp(text);
    if let Some(amount) = Quantity::parse(text) {
        assert_eq!(Quantity::parse(&amount.canonical()), Some(amount), "{text}");
        let _ = (amount.plus(amount), amount.minus(amount), amount.whole(), amount.approximate(), amount.signum());
    }
}
