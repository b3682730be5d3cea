//! The same requests in another notation: some bodies and answers as messages of protobuf, some of them damaged.
//!
//! It has dice of its own, so that what a sequence is about does not depend on it.

use serde_json::{Value, json};

use super::dice::Dice;
use super::kinds::{self, Kind};

/// What makes its dice different from those of the sequence.
const SALT: u64 = 0x6b38_7300;
/// How many of a hundred bodies, answers and watches are messages, and how much bad input.
const BODIES: u32 = 12;
const ANSWERS: u32 = 12;
const WATCHES: u32 = 20;
const BAD: u32 = 30;
/// How many of a hundred bodies of instances of definitions, about which there are no messages.
const CUSTOM: u32 = 1;
/// As programs ask.
const PROGRAMS: &str = "application/vnd.kubernetes.protobuf,application/json";
const DAMAGES: [&str; 13] = [
    "cut", "magic", "empty", "content", "way", "group", "zero", "endless", "unknown", "kind", "no-kind", "version",
    "unnamed",
];

/// Says some of the requests of a sequence in the other notation.
pub fn vary(seed: u64, index: u64, steps: &mut [Value]) {
    let mut dice = Dice::new(seed ^ SALT, index);
    for step in steps {
        let kind = kind_of(step);
        let is_custom = kind.is_some_and(|kind| kind.custom);
        let is_bad = step["step"] == "bad input" && method(step) == "POST";
        if let (Some(kind), true, false) = (kind, is_bad, is_custom) {
            if dice.percent(BAD) {
                damage(&mut dice, kind, step);
            }
        } else if dice.percent(if is_custom { CUSTOM } else { BODIES }) {
            say_body(step);
        }
        let often = if step.get("watch").is_some() { WATCHES } else { ANSWERS };
        let can_ask = step.get("accept").is_none() && step.get("read").is_none();
        if can_ask && dice.percent(often) {
            step["accept"] = json!(dice.one(&["protobuf", PROGRAMS, PROGRAMS]));
        }
    }
}

fn line(step: &Value) -> &str {
    step["send"].as_str().unwrap_or_default()
}

fn method(step: &Value) -> &str {
    line(step).split(' ').next().unwrap_or_default()
}

/// The kind that a request is about.
fn kind_of(step: &Value) -> Option<&'static Kind> {
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

/// Makes a body of JSON a message.
fn say_body(step: &mut Value) {
    let is_json = step.get("type").is_none() && matches!(method(step), "POST" | "PUT" | "DELETE");
    let Some(parts) = step.as_object_mut().filter(|_| is_json) else { return };
    if let Some(body) = parts.remove("body") {
        parts.insert("protobuf".to_owned(), body);
    }
}

/// Makes bad input a broken message.
fn damage(dice: &mut Dice, kind: &Kind, step: &mut Value) {
    let mut object = (kind.content)(dice);
    object["apiVersion"] = json!(kind.api_version);
    object["kind"] = json!(kind.name);
    object["metadata"] = json!({"name": "damaged"});
    let send = format!("{}?dryRun=All", line(step).split('?').next().unwrap_or_default());
    *step = json!({"step": "bad input", "send": send, "protobuf": object, "damage": dice.one(&DAMAGES)});
}

#[cfg(test)]
mod tests {
    use super::super::sequence::Sequence;
    use super::*;

    #[test]
    fn sequences_have_messages_of_every_sort_and_are_still_exchanges() {
        let sequences: Vec<Sequence> = (0..600).map(|index| Sequence::generate(1, index, 20)).collect();
        let steps = || sequences.iter().flat_map(|sequence| &sequence.steps);
        for damage in DAMAGES {
            assert!(steps().any(|step| step["damage"] == damage), "{damage}");
        }
        let whole = |step: &&Value| step.get("protobuf").is_some() && step.get("damage").is_none();
        assert!(steps().filter(whole).count() > 100);
        assert!(steps().any(|step| step.get("watch").is_some() && step["accept"] == PROGRAMS));
        for sequence in &sequences {
            assert!(sequence.script("one").is_ok(), "{}", sequence.written());
        }
    }
}
