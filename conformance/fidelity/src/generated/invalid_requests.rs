//! Generates invalid requests.

use serde_json::{Value, json};

use super::objects::{SequenceObject, whole_object};
use super::random::RandomSource;

/// A little more than the largest body that a server accepts.
const TOO_LARGE: &str = "${repeat x 3145729}";
/// Nested deeper than any parser accepts.
const DEEP: &str = "${repeat [ 20000}";

/// Returns one invalid request.
pub(super) fn generate(random: &mut RandomSource, object: &SequenceObject) -> Value {
    let (collection, path) = (object.collection(), object.path());
    let manifest = whole_object(random, object);
    let text = manifest.to_string();
    let send = |send: String| json!({"step": "bad input", "send": send});
    let with = |mut step: Value, parts: Value| {
        let (Some(step_parts), Value::Object(parts)) = (step.as_object_mut(), parts) else { return step };
        step_parts.extend(parts);
        step
    };
    let post = || send(format!("POST {collection}"));
    let patch = |query: &str| send(format!("PATCH {path}{query}"));
    // The error for a Service with an invalid name contains a random address.
    match random.between(0, if object.kind.name == "Service" { 26 } else { 27 }) {
        0 => with(post(), json!({"text": text[..text.len() / 2]})),
        1 => with(post(), json!({"text": text.replacen(':', ";", 1)})),
        2 => with(post(), json!({"text": ""})),
        3 => with(post(), json!({"text": "[]"})),
        4 => with(post(), json!({"text": "\"text\""})),
        5 => with(post(), json!({"text": TOO_LARGE})),
        6 => with(post(), json!({"text": format!("{{\"a\":{DEEP}")})),
        7 => with(post(), json!({"text": text, "type": "text/plain"})),
        8 => with(post(), json!({"text": text, "type": "application/xml"})),
        9 => with(patch(""), json!({"text": "{}", "type": "application/json"})),
        10 => with(patch(""), json!({"text": "{}", "type": "text/plain"})),
        11 => with(patch(""), json!({"text": "\"text\"", "type": "merge"})),
        12 => with(patch(""), json!({"text": "{", "type": "merge"})),
        13 => with(patch(""), json!({"text": "{}", "type": "json-patch"})),
        14 => with(patch(""), json!({"body": {"metadata": "text"}, "type": "merge"})),
        15 => with(patch(""), json!({"body": [{"op": "replace", "path": "", "value": "text"}], "type": "json-patch"})),
        16 => with(patch("?fieldManager=first"), json!({"text": "a: [", "type": "apply"})),
        17 => with(patch("?fieldManager=first"), json!({"text": "text", "type": "apply"})),
        18 => send("GET /apis/unknown.example.com/v1/things".to_owned()),
        19 => send(format!("GET {collection}/../{}", object.kind.plural)),
        20 => send(format!("GET {collection}/%2e%2e")),
        21 => send(format!("GET {collection}?limit=-1&labelSelector=of%3D${{namespace}}")),
        22 => send(format!("GET {collection}?limit=many")),
        23 => send(format!("GET {collection}?limit=1&continue=forged")),
        24 => {
            send(format!("GET {collection}?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjIiLCJydiI6MSwic3RhcnQiOiJhIn0"))
        }
        25 => send(format!("GET {collection}?labelSelector=a%3D%3D%3Db")),
        26 => send(format!("GET {collection}?fieldSelector=spec.nothing%3Da")),
        _ => {
            let mut manifest = manifest;
            let names = ["Upper", "under_score", "-dash", "a..b", "${repeat a 260}", "with space", ""];
            manifest["metadata"]["name"] = json!(random.one(&names));
            with(post(), json!({ "body": manifest }))
        }
    }
}
