//! Defaults of Services.

use serde_json::{Value, json};

use super::validation::is_reachable_from_outside;
use crate::object::fields::string_at;
use crate::strategy::default_values::{set_default, set_default_if_empty};

/// Sets the defaults of a spec that depend on its type and its session affinity.
pub(in crate::strategy) fn set_spec_defaults(spec: &mut Value) {
    if string_at(spec, "/sessionAffinity") == "ClientIP" {
        set_default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10_800}}));
    }
    if let (true, Some(spec)) = (string_at(spec, "/sessionAffinity") == "None", spec.as_object_mut()) {
        spec.remove("sessionAffinityConfig");
    }
    let kind = string_at(spec, "/type").to_owned();
    if kind != "ExternalName" {
        set_default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if is_reachable_from_outside(spec) {
        set_default_if_empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}

/// Sets the target port to the port.
pub(in crate::strategy) fn set_port_defaults(port: &mut Value) {
    let number = port.get("port").cloned().unwrap_or_default();
    // 0 and "" count as absent, because Protobuf cannot omit the field.
    if matches!(port.get("targetPort"), Some(target) if *target == 0 || *target == "") {
        port["targetPort"] = Value::Null;
    }
    set_default(port, "targetPort", number);
}

/// Sets the default `ipMode` of load balancer addresses.
pub(super) fn set_ip_mode_defaults(service: &mut Value) {
    if string_at(service, "/spec/type") != "LoadBalancer" {
        return;
    }
    let ingress = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for address in ingress.into_iter().flatten().filter(|address| !string_at(address, "/ip").is_empty()) {
        set_default(address, "ipMode", json!("VIP"));
    }
}
