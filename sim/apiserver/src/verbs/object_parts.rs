//! Subresources that change one part of an object: the ephemeral containers of a pod, the resources of its containers, and the
//! approval of a certificate signing request.

use serde_json::{Value, json};

use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, metadata, string_at};

/// True for a subresource that changes one part of an object.
pub(super) fn is_part(subresource: &str) -> bool {
    matches!(subresource, "approval" | "ephemeralcontainers" | "resize")
}

/// Returns the live object with the part of the requested one that a subresource changes.
pub(super) fn take_part(subresource: &str, live: &Value, requested: &Value) -> Value {
    let mut object = live.clone();
    if let Some(managers) = requested["metadata"].get("managedFields") {
        metadata(&mut object).insert("managedFields".to_owned(), managers.clone());
    }
    match subresource {
        "approval" => take_field(&mut object, requested, "status", "conditions"),
        "ephemeralcontainers" => take_field(&mut object, requested, "spec", "ephemeralContainers"),
        _ => take_resources(&mut object, requested),
    }
    object
}

fn take_field(object: &mut Value, requested: &Value, part: &str, field: &str) {
    if let Some(value) = requested.get(part).and_then(|part| part.get(field)) {
        object[part][field] = value.clone();
    }
}

/// Takes the resources of the containers of a pod.
fn take_resources(pod: &mut Value, requested: &Value) {
    for list in ["containers", "initContainers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let same =
                array_at(&requested["spec"], &format!("/{list}")).iter().find(|one| one["name"] == container["name"]);
            for field in ["resources", "resizePolicy"] {
                if let Some(value) = same.and_then(|same| same.get(field)) {
                    container[field] = value.clone();
                }
            }
        }
    }
}

/// Returns the errors of a change: ephemeral containers cannot be removed or changed.
pub(super) fn part_errors(subresource: &str, live: &Value, pod: &Value) -> Vec<FieldError> {
    if subresource != "ephemeralcontainers" {
        return Vec::new();
    }
    let now = array_at(pod, "/spec/ephemeralContainers");
    let mut errors = Vec::new();
    for old in array_at(live, "/spec/ephemeralContainers") {
        let name = string_at(old, "/name");
        match now.iter().position(|new| new["name"] == json!(name)) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden("spec.ephemeralContainers", &detail));
            }
            Some(index) if now[index] != *old => {
                let detail = format!("existing ephemeral containers {name:?} may not be changed\n");
                errors.push(FieldError::forbidden("spec.ephemeralContainers", &detail));
            }
            Some(_) => {}
        }
    }
    errors
}
