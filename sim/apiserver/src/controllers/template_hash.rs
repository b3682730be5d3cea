//! The hash of a pod template, which is part of the names of replica sets and of the labels of DaemonSet pods.
//!
//! The real system hashes a printout of the Go structs: every field in the order of its declaration, with its type,
//! set or not. `pod-template/types.json` holds that order (written by `pod-template/main.go`).

use std::sync::OnceLock;

use serde_json::Value;

use crate::object::fields::array_at;
use crate::storage::ids::safe_encode;

const TYPES: &str = include_str!("../../pod-template/types.json");

fn types() -> &'static Value {
    static PARSED: OnceLock<Value> = OnceLock::new();
    PARSED.get_or_init(|| serde_json::from_str(TYPES).expect("the table is part of the program"))
}

/// Returns the hash of a template. A deployment whose replica set name was taken includes its number of collisions.
pub(super) fn template_hash(template: &Value, collisions: Option<u32>) -> String {
    let mut printed = String::from("(v1.PodTemplateSpec)");
    print(&mut printed, "v1.PodTemplateSpec", Some(template));
    let mut bytes = printed.into_bytes();
    if let Some(collisions) = collisions {
        bytes.extend(u64::from(collisions).to_le_bytes());
    }
    safe_encode(&fnv32a(&bytes).to_string())
}

/// FNV-1a with 32 bits.
pub(super) fn fnv32a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// FNV-1 with 32 bits, used for ControllerRevisions.
pub(super) fn fnv32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte))
}

/// Formats a type as Go prints it: without the underlying type, which the table gives after a colon.
fn printed_type(go_type: &str) -> String {
    if let Some(element) = go_type.strip_prefix("[]") {
        return format!("[]{}", printed_type(element));
    }
    if let Some(target) = go_type.strip_prefix('*') {
        return format!("*{}", printed_type(target));
    }
    if go_type.starts_with("map[") {
        return go_type.to_owned();
    }
    go_type.split_once(':').map_or(go_type, |(name, _)| name).to_owned()
}

fn print(out: &mut String, go_type: &str, value: Option<&Value>) {
    let value = value.filter(|value| !value.is_null());
    if let Some(target) = go_type.strip_prefix('*') {
        return if value.is_some() { print(out, target, value) } else { out.push_str("<nil>") };
    }
    if let Some(element) = go_type.strip_prefix("[]") {
        return print_list(out, element, value);
    }
    let is_map = |go_type: &str| go_type.starts_with("map[");
    if is_map(go_type) || go_type.split_once(':').is_some_and(|(_, under)| is_map(under)) {
        return print_map(out, go_type, value);
    }
    match go_type {
        "resource.Quantity" => return print_quantity(out, value.and_then(Value::as_str).unwrap_or_default()),
        "intstr.IntOrString" => return print_int_or_string(out, value),
        "time.Time" => return out.push_str("{wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}"),
        _ => {}
    }
    if types().get(go_type).is_some() {
        return print_struct(out, go_type, value);
    }
    let kind = go_type.split_once(':').map_or(go_type, |(_, kind)| kind);
    match value {
        Some(Value::String(text)) => out.push_str(text),
        Some(other) => out.push_str(&other.to_string()),
        None => out.push_str(match kind {
            "string" => "",
            "bool" => "false",
            _ => "0",
        }),
    }
}

fn print_struct(out: &mut String, go_type: &str, value: Option<&Value>) {
    out.push('{');
    for (index, field) in array_at(types(), &format!("/{go_type}")).iter().enumerate() {
        let part = |index: usize| field.get(index).and_then(Value::as_str).unwrap_or_default();
        let (name, in_json, kind) = (part(0), part(1), part(2));
        if index > 0 {
            out.push(' ');
        }
        out.push_str(&format!("{name}:({})", printed_type(kind)));
        // A field without a JSON name is embedded in its parent.
        let inner = if in_json.is_empty() { value } else { value.and_then(|value| value.get(in_json)) };
        print(out, kind, inner);
    }
    out.push('}');
}

fn print_list(out: &mut String, element: &str, value: Option<&Value>) {
    let Some(elements) = value.and_then(Value::as_array).filter(|elements| !elements.is_empty()) else {
        return out.push_str("<nil>");
    };
    out.push('[');
    for (index, value) in elements.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        print(out, element, Some(value));
    }
    out.push(']');
}

fn print_map(out: &mut String, go_type: &str, value: Option<&Value>) {
    let Some(entries) = value.and_then(Value::as_object).filter(|entries| !entries.is_empty()) else {
        return out.push_str("<nil>");
    };
    let element = go_type.rsplit_once(']').map_or("string", |(_, element)| element);
    out.push_str("map[");
    for (index, (key, value)) in entries.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(&format!("{key}:"));
        print(out, element, Some(value));
    }
    out.push(']');
}

/// Prints an `IntOrString`.
fn print_int_or_string(out: &mut String, value: Option<&Value>) {
    let (kind, number, text) = match value {
        Some(Value::String(text)) => (1, 0, text.as_str()),
        other => (0, other.and_then(Value::as_i64).unwrap_or_default(), ""),
    };
    out.push_str(&format!("{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}"));
}

/// Prints a quantity in its canonical form, in which objects are stored.
fn print_quantity(out: &mut String, text: &str) {
    let end = text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let number: i64 = digits.parse().unwrap_or_default();
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix);
    let decimal = [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    let scale = decimal.iter().find(|(known, _)| *known == suffix).map_or(0, |(_, scale)| *scale);
    let power = binary.and_then(|index| u32::try_from(index + 1).ok()).unwrap_or_default();
    let value = number.saturating_mul(1024_i64.saturating_pow(power));
    let format = match (text.is_empty(), binary) {
        (true, _) => "",
        (false, Some(_)) => "BinarySI",
        (false, None) => "DecimalSI",
    };
    // Go's parser keeps the text only if its fast path recognises it as canonical.
    let kept = match binary {
        Some(_) => number % 8 != 0,
        None => !digits.ends_with("000") && !digits.starts_with('0'),
    };
    let text = if kept { text } else { "" };
    out.push_str(&format!(
        "{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} \
         d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){text} Format:(resource.Format){format}}}"
    ));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_small_template_has_the_recorded_hash() {
        let template = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{
                    "image": "i", "imagePullPolicy": "Always", "name": "c", "resources": {},
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst", "nodeSelector": {"nowhere": "true"}, "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
            },
        });
        assert_eq!(template_hash(&template, None), "66f85c9848");
    }

    #[test]
    fn a_large_template_has_the_hash_of_the_real_code() {
        let template: Value = serde_json::from_str(include_str!("../../pod-template/large.json")).expect("valid");
        assert_eq!(template_hash(&template, None), LARGE_HASH);
        assert_ne!(template_hash(&template, Some(1)), LARGE_HASH, "collisions change the hash");
    }

    const LARGE_HASH: &str = "7bb8b8db4";
}
