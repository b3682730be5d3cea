//! Changes some sequences so that kubectl writes the objects, first with client-side apply and then with server-side apply.
//!
//! It has a random source of its own, so that the rest of the sequence does not depend on it.

use serde_json::{Value, json};

use super::objects::MANAGERS;
use super::random::RandomSource;

/// Makes the random source different from that of the sequence.
const SALT: u64 = 0x6b75_6265;
/// Percentage of sequences that are changed.
const SEQUENCES: u32 = 15;
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Changes the steps of some sequences to requests of kubectl.
pub fn vary(seed: u64, index: u64, steps: &mut [Value]) {
    let mut random = RandomSource::new(seed ^ SALT, index);
    if !random.percent(SEQUENCES) {
        return;
    }
    for step in steps.iter_mut().filter(|step| step["send"].is_string()) {
        let manager = if step["type"] == "apply" { "kubectl" } else { "kubectl-client-side-apply" };
        let send = step["send"].as_str().unwrap_or_default().to_owned();
        step["send"] =
            json!(send.replace(&format!("fieldManager={}", MANAGERS[0]), &format!("fieldManager={manager}")));
        let is_create = send.starts_with("POST") && step["body"]["metadata"]["name"].is_string();
        if is_create && random.percent(80) {
            annotate(step);
        }
    }
}

/// Adds the annotation of client-side apply to a created object.
fn annotate(step: &mut Value) {
    let configuration = format!("{}\n", step["body"]);
    if step["body"]["metadata"]["annotations"].is_null() {
        step["body"]["metadata"]["annotations"] = json!({});
    }
    step["body"]["metadata"]["annotations"][ANNOTATION] = json!(configuration);
}
