//! Changes some requests of a sequence to protobuf: bodies, responses and watches, some of them damaged.
//!
//! It has a random source of its own, so that the rest of the sequence does not depend on it.

use serde_json::{Value, json};

use super::kinds::{self, ResourceKind};
use super::random::RandomSource;

/// Makes the random source different from that of the sequence.
const SALT: u64 = 0x6b38_7300;
/// Percentages of bodies, responses, watches and invalid requests in protobuf.
const BODIES: u32 = 12;
const RESPONSES: u32 = 12;
const WATCHES: u32 = 20;
const INVALID: u32 = 30;
/// Percentage of bodies of custom resources, which have no protobuf messages.
const CUSTOM: u32 = 1;
/// Accept header of programs written in Go.
const GO_CLIENT: &str = "application/vnd.kubernetes.protobuf,application/json";
const DAMAGES: [&str; 13] = [
    "cut", "magic", "empty", "content", "way", "group", "zero", "endless", "unknown", "kind", "no-kind", "version",
    "unnamed",
];

/// Changes some of the steps of a sequence to protobuf.
pub fn vary(seed: u64, index: u64, steps: &mut [Value]) {
    let mut random = RandomSource::new(seed ^ SALT, index);
    for step in steps {
        let kind = find_kind(step);
        let is_custom = kind.is_some_and(|kind| kind.custom);
        let is_invalid = step["step"] == "bad input" && method(step) == "POST";
        if let (Some(kind), true, false) = (kind, is_invalid, is_custom) {
            if random.percent(INVALID) {
                damage(&mut random, kind, step);
            }
        } else if random.percent(if is_custom { CUSTOM } else { BODIES }) {
            encode_body(step);
        }
        let percentage = if step.get("watch").is_some() { WATCHES } else { RESPONSES };
        let has_default_accept = step.get("accept").is_none() && step.get("read").is_none();
        if has_default_accept && random.percent(percentage) {
            step["accept"] = json!(random.one(&["protobuf", GO_CLIENT, GO_CLIENT]));
        }
    }
}

fn line(step: &Value) -> &str {
    step["send"].as_str().unwrap_or_default()
}

fn method(step: &Value) -> &str {
    line(step).split(' ').next().unwrap_or_default()
}

/// Returns the kind of a request.
fn find_kind(step: &Value) -> Option<&'static ResourceKind> {
    let path = line(step).split(' ').nth(1)?.split('?').next()?;
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (api_version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return None,
    };
    let plural = match rest {
        ["namespaces", _, plural, ..] if *plural != "status" => plural,
        [plural, ..] => plural,
        [] => return None,
    };
    kinds::all().into_iter().find(|kind| kind.api_version == api_version && kind.plural == *plural)
}

/// Changes a JSON body to protobuf.
fn encode_body(step: &mut Value) {
    let is_json = step.get("type").is_none() && matches!(method(step), "POST" | "PUT" | "DELETE");
    let Some(parts) = step.as_object_mut().filter(|_| is_json) else { return };
    if let Some(body) = parts.remove("body") {
        parts.insert("protobuf".to_owned(), body);
    }
}

/// Changes an invalid request to a damaged message.
fn damage(random: &mut RandomSource, kind: &ResourceKind, step: &mut Value) {
    let mut object = (kind.content)(random);
    object["apiVersion"] = json!(kind.api_version);
    object["kind"] = json!(kind.name);
    object["metadata"] = json!({"name": "damaged"});
    let send = format!("{}?dryRun=All", line(step).split('?').next().unwrap_or_default());
    *step = json!({"step": "bad input", "send": send, "protobuf": object, "damage": random.one(&DAMAGES)});
}

#[cfg(test)]
mod tests {
    use super::super::sequence::Sequence;
    use super::*;

    #[test]
    fn sequences_have_all_types_of_messages_and_are_valid_scripts() {
        let sequences: Vec<Sequence> = (0..600).map(|index| Sequence::generate(1, index, 20)).collect();
        let steps = || sequences.iter().flat_map(|sequence| &sequence.steps);
        for damage in DAMAGES {
            assert!(steps().any(|step| step["damage"] == damage), "{damage}");
        }
        let whole = |step: &&Value| step.get("protobuf").is_some() && step.get("damage").is_none();
        assert!(steps().filter(whole).count() > 100);
        assert!(steps().any(|step| step.get("watch").is_some() && step["accept"] == GO_CLIENT));
        for sequence in &sequences {
            assert!(sequence.to_script("one").is_ok(), "{}", sequence.to_json());
        }
    }
}
