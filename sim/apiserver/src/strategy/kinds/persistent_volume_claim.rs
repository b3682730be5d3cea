//! PersistentVolumeClaim.

use serde_json::{Value, json};
use sindri_cel::Quantity;

use crate::admission::storage_class::CLASS_ANNOTATION;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at, value_at};
use crate::object::finalizers::add_finalizer;
use crate::strategy::checks::struct_diff::{format_difference, format_struct};
use crate::strategy::{EmptyValue, PrepareContext, Strategy};

const IMMUTABLE: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

const CLASS_WARNING: &str = "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \"storageClassName\" attribute instead";

pub(super) struct PersistentVolumeClaim;

impl Strategy for PersistentVolumeClaim {
    fn prepare_for_create(&self, _context: &mut PrepareContext<'_>, object: &mut Value) {
        object["status"] = json!({"phase": "Pending"});
        add_finalizer(object, "kubernetes.io/pvc-protection");
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if array_at(object, "/spec/accessModes").is_empty() {
            errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
        }
        if object.pointer("/spec/resources/requests/storage").is_none() {
            errors.push(FieldError::required("spec.resources[storage]", ""));
        }
        errors
    }

    fn validate_update(&self, live: &Value, object: &Value, _empty_values: &[EmptyValue]) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (before, after) = (immutable_spec(live, live, object), immutable_spec(object, live, object));
        if before != after {
            let diff = format_difference(&format_struct(&go_fields(&before)), &format_struct(&go_fields(&after)));
            errors.push(FieldError::forbidden("spec", &format!("{IMMUTABLE}\n{diff}")));
        }
        let size = |claim: &Value, pointer: &str| Quantity::parse(string_at(claim, pointer));
        let zero = || Quantity::parse("0");
        let pointer = "/spec/resources/requests/storage";
        let (old_size, new_size) = (size(live, pointer).or_else(zero), size(object, pointer).or_else(zero));
        let capacity = size(live, "/status/capacity/storage").or_else(zero);
        if new_size < old_size && new_size <= capacity {
            let detail = "field can not be less than status.capacity";
            errors.push(FieldError::forbidden("spec.resources.requests.storage", detail));
        }
        let mode = |claim: &Value| claim.pointer("/spec/volumeMode").cloned().unwrap_or_default();
        if mode(live) != mode(object) {
            errors.push(FieldError::invalid("volumeMode", &mode(object), "field is immutable"));
        }
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        let is_annotated = value_at(object, CLASS_ANNOTATION).is_some();
        is_annotated.then(|| CLASS_WARNING.to_owned()).into_iter().collect()
    }

    /// The real server stores a new claim differently from its decoded form, so that the next update always writes.
    fn stores_first_update(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Returns the part of a claim's spec that must not change.
fn immutable_spec(claim: &Value, live: &Value, object: &Value) -> Value {
    let mut spec = claim.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_set = |claim: &Value, field: &str| claim["spec"].get(field).is_some_and(|value| !value.is_null());
    for field in ["volumeName", "storageClassName"] {
        // An unset field may be set once.
        if !is_set(live, field) && is_set(object, field) {
            spec.remove(field);
        }
    }
    if string_at(object, "/status/phase") == "Bound" {
        spec.remove("volumeAttributesClassName");
        let requests = spec.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        if let (Some(requests), Some(old_size)) = (requests, live.pointer("/spec/resources/requests/storage")) {
            requests["storage"] = old_size.clone();
        }
    }
    Value::Object(spec)
}

/// Returns all fields of the Go struct of a claim's spec, in declaration order.
fn go_fields(spec: &Value) -> Vec<(&'static str, Value)> {
    let part = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
    let reference = |value: Value, names: &[(&str, &str)]| match value {
        Value::Object(_) => names.iter().map(|(go, name)| ((*go).to_owned(), part(&value, name))).collect(),
        _ => Value::Null,
    };
    let resources = part(spec, "resources");
    let source = [("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"), ("Namespace", "namespace")];
    vec![
        ("AccessModes", part(spec, "accessModes")),
        ("Selector", part(spec, "selector")),
        ("Resources", json!({"Limits": part(&resources, "limits"), "Requests": part(&resources, "requests")})),
        ("VolumeName", json!(string_at(spec, "/volumeName"))),
        ("StorageClassName", part(spec, "storageClassName")),
        ("VolumeMode", part(spec, "volumeMode")),
        ("DataSource", reference(part(spec, "dataSource"), &source[..3])),
        ("DataSourceRef", reference(part(spec, "dataSourceRef"), &source)),
        ("VolumeAttributesClassName", part(spec, "volumeAttributesClassName")),
    ]
}
