//! Defaults of built-in kinds, by the struct that contains a field.
//!
//! A server-side apply does not own defaulted fields; a create or update does.

use serde_json::{Value, json};

use super::Strategy;
use super::default_values::{set_default, set_default_if_empty, set_default_in};
use super::kinds::service::defaults::{set_port_defaults, set_spec_defaults};
use crate::object::fields::string_at;
use crate::registry::types::{SchemaType, ValueType};

/// Sets the defaults of an object and of everything inside it.
pub(crate) fn set_defaults(strategy: &dyn Strategy, schema_type: &SchemaType, object: &mut Value) {
    strategy.set_defaults(schema_type, object);
    set_struct_defaults(schema_type, object);
}

/// Sets the defaults of the structs in a value.
fn set_struct_defaults(schema_type: &SchemaType, value: &mut Value) {
    match (schema_type.value_type, &mut *value) {
        (ValueType::Struct, Value::Object(_)) => {
            for (field, text) in &schema_type.defaults {
                if value.get(field).is_none_or(Value::is_null) {
                    set_default(value, field, text.clone());
                }
            }
            set_computed_defaults(&schema_type.short_name, value);
            if let Value::Object(map) = value {
                for (name, child) in map.iter_mut() {
                    if let Some(field) = schema_type.field(name) {
                        set_struct_defaults(field.field_type(), child);
                    }
                }
            }
        }
        (ValueType::Map, Value::Object(map)) => {
            if let Some(values) = schema_type.element() {
                map.values_mut().for_each(|value| set_struct_defaults(values, value));
            }
        }
        (ValueType::List, Value::Array(list)) => {
            if let Some(items) = schema_type.element() {
                list.iter_mut().for_each(|item| set_struct_defaults(items, item));
            }
        }
        _ => {}
    }
}

/// Sets the defaults that depend on other fields.
fn set_computed_defaults(struct_name: &str, value: &mut Value) {
    match struct_name {
        "Container" | "EphemeralContainer" => {
            set_default(value, "imagePullPolicy", json!(pull_policy(string_at(value, "/image"))))
        }
        "Volume" if value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("name")) => {
            set_default(value, "emptyDir", json!({}));
        }
        "PodSpec" => sync_service_account(value),
        "ServiceSpec" => set_spec_defaults(value),
        "ServicePort" => set_port_defaults(value),
        "DeploymentStrategy" | "StatefulSetUpdateStrategy" | "DaemonSetUpdateStrategy"
            if string_at(value, "/type") == "RollingUpdate" =>
        {
            set_default(value, "rollingUpdate", json!({}));
        }
        "NetworkPolicySpec" if value.get("policyTypes").is_none_or(Value::is_null) => {
            let egress = value.get("egress").is_some_and(|rules| !rules.is_null());
            set_default(value, "policyTypes", if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
        "RoleRef" => set_default_if_empty(value, "apiGroup", "rbac.authorization.k8s.io"),
        "Subject" if matches!(string_at(value, "/kind"), "User" | "Group") => {
            set_default_if_empty(value, "apiGroup", "rbac.authorization.k8s.io");
        }
        "ValidatingWebhook" | "MutatingWebhook" | "MatchResources" => {
            set_default(value, "matchPolicy", json!("Equivalent"));
            set_default(value, "namespaceSelector", json!({}));
            set_default(value, "objectSelector", json!({}));
        }
        "LimitRangeItem" if string_at(value, "/type") == "Container" => set_limit_defaults(value),
        "PersistentVolumeClaim" => {
            set_default(value, "apiVersion", json!("v1"));
            set_default(value, "kind", json!("PersistentVolumeClaim"));
            set_default_in(value, "status", "phase", json!("Pending"));
        }
        "CSIDriverSpec" => {
            for field in ["podInfoOnMount", "requiresRepublish", "storageCapacity", "seLinuxMount"] {
                set_default(value, field, json!(false));
            }
            set_default(value, "volumeLifecycleModes", json!(["Persistent"]));
        }
        _ => {}
    }
}

/// Sets `serviceAccountName` and its deprecated alias `serviceAccount` to the same value.
fn sync_service_account(spec: &mut Value) {
    let name = [string_at(spec, "/serviceAccountName"), string_at(spec, "/serviceAccount")];
    let name = name.into_iter().find(|name| !name.is_empty()).map(|name| json!(name));
    if let (Some(name), Some(spec)) = (name, spec.as_object_mut()) {
        spec.insert("serviceAccountName".to_owned(), name.clone());
        spec.insert("serviceAccount".to_owned(), name);
    }
}

/// Returns the default pull policy of an image.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit_once('/').map_or(image, |(_, last)| last);
    if last.contains('@') {
        return "IfNotPresent";
    }
    match last.split_once(':').map(|(_, tag)| tag) {
        None | Some("latest") => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Sets the default limit from the maximum, and the default request from the default limit or the minimum.
fn set_limit_defaults(item: &mut Value) {
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(source) = item.get(from).and_then(Value::as_object).cloned() else { continue };
        set_default(item, to, json!({}));
        if let Some(target) = item.get_mut(to).and_then(Value::as_object_mut) {
            for (name, amount) in source {
                target.entry(name).or_insert(amount);
            }
        }
    }
}
