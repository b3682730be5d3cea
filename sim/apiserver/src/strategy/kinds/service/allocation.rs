//! Allocation of cluster IPs and node ports, and the errors in those that a Service names itself.

use serde_json::{Map, Value, json};

use super::validation::is_reachable_from_outside;
use crate::object::field_error::FieldError;
use crate::object::fields::{array_at, string_at, uid};
use crate::storage::store::Store;
use crate::strategy::PrepareContext;
use crate::strategy::service_allocator::{FIRST_NODE_PORT, NODE_PORTS};

/// Sets the addresses and node ports that a Service does not name itself; an update keeps those of the live object.
pub(super) fn allocate(context: &mut PrepareContext<'_>, live: Option<&Value>, service: &mut Value) {
    let service_type = string_at(service, "/spec/type").to_owned();
    if !service.get("spec").is_some_and(Value::is_object) {
        return;
    }
    if service_type == "ExternalName" {
        let was_another = live.is_some_and(|live| string_at(live, "/spec/type") != "ExternalName");
        if let (true, Some(spec)) = (was_another, service["spec"].as_object_mut()) {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
                spec.remove(field);
            }
        }
        return;
    }
    // A client that replaces the object need not repeat its addresses.
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"] {
        let has_selector =
            service["spec"].get("selector").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        if let (true, Some(known)) =
            (service["spec"].get(field).is_none(), live.and_then(|live| live["spec"].get(field)))
            && !(field == "ipFamilies" && has_selector && known.as_array().is_some_and(|known| known.len() > 1))
        {
            service["spec"][field] = known.clone();
        }
    }
    if string_at(service, "/spec/clusterIP").is_empty() {
        service["spec"]["clusterIP"] = context.allocator.next_address(context.store);
    }
    if let Some(live) = live {
        sync_cluster_ips(live, service);
    }
    let address = service["spec"]["clusterIP"].clone();
    let spec = &mut service["spec"];
    // The IP families of a headless service without a selector are not known in advance.
    let has_unknown_families =
        address == "None" && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty);
    let (families, policy) = match string_at(spec, "/ipFamilyPolicy") {
        "" if has_unknown_families => (json!(["IPv4", "IPv6"]), json!("RequireDualStack")),
        "PreferDualStack" if has_unknown_families => (json!(["IPv4", "IPv6"]), json!("PreferDualStack")),
        _ => (json!(["IPv4"]), json!("SingleStack")),
    };
    let defaults = [("clusterIPs", json!([address])), ("ipFamilies", families), ("ipFamilyPolicy", policy)];
    for (field, value) in defaults {
        if spec.get(field).is_none_or(Value::is_null) {
            spec[field] = value;
        }
    }
    if string_at(spec, "/ipFamilyPolicy") == "SingleStack" {
        for field in ["ipFamilies", "clusterIPs"] {
            spec.get_mut(field).and_then(Value::as_array_mut).into_iter().for_each(|list| list.truncate(1));
        }
    }
    if matches!(service_type.as_str(), "NodePort" | "LoadBalancer") && spec["allocateLoadBalancerNodePorts"] != false {
        allocate_node_ports(context, live, spec);
    }
    if let Some(live) = live {
        drop_fields_of_previous_type(live, service);
    }
}

/// Sets the node ports that a Service does not name itself.
fn allocate_node_ports(context: &mut PrepareContext<'_>, live: Option<&Value>, spec: &mut Value) {
    let known: Vec<Value> = live.map(|live| array_at(live, "/spec/ports").to_vec()).unwrap_or_default();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let ports: Vec<&mut Value> = ports.into_iter().flatten().collect();
    let requested: Vec<&Value> = ports.iter().filter_map(|port| port.get("nodePort")).collect();
    let mut used: Vec<Value> = known.iter().filter_map(|port| port.get("nodePort")).cloned().collect();
    used.retain(|number| requested.contains(&number));
    let mut taken: Vec<(Value, Value, Value)> = Vec::new();
    for port in ports {
        if port.get("nodePort").is_none() {
            // A port is identified by its name; of several without a name, the last one is used.
            let same = known.iter().rev().find(|other| other.get("name") == port.get("name"));
            let same = same.and_then(|same| same.get("nodePort")).filter(|number| !used.contains(number)).cloned();
            // The same node port serves another protocol of the same port, too.
            let shared = taken.iter().filter(|_| live.is_none()).find(|(number, protocol, node)| {
                let twice = taken.iter().any(|other| other.1 == port["protocol"] && other.2 == *node);
                *number == port["port"] && *protocol != port["protocol"] && !twice
            });
            let given = same.or(shared.map(|(_, _, node)| node.clone()));
            port["nodePort"] = given.unwrap_or_else(|| context.allocator.next_node_port(context.store));
        }
        taken.push((port["port"].clone(), port["protocol"].clone(), port["nodePort"].clone()));
    }
    if string_at(spec, "/externalTrafficPolicy") == "Local"
        && string_at(spec, "/type") == "LoadBalancer"
        && spec.get("healthCheckNodePort").is_none()
    {
        spec["healthCheckNodePort"] = context.allocator.next_node_port(context.store);
    }
}

/// Returns the error for a repeated node port, which the real server reports as an internal error.
pub(super) fn repeated_node_port(service: &Value) -> Option<String> {
    let identity = |port: &Value| (string_at(port, "/protocol").to_owned(), port.get("nodePort").cloned());
    let ports: Vec<_> = array_at(service, "/spec/ports").iter().map(identity).collect();
    let duplicate = ports.iter().enumerate().find(|(index, port)| port.1.is_some() && ports[..*index].contains(port));
    let (protocol, number) = duplicate?.1;
    Some(format!("duplicate nodePort: {{{protocol} {}}}", number.clone().unwrap_or_default()))
}

/// Returns the errors in the cluster IP, node ports and IP families of a Service.
pub(super) fn allocation_errors(store: &Store, service: &Value) -> Vec<FieldError> {
    let own = uid(service);
    // Evaluated only if needed: there may be thousands of services.
    let others = || {
        let collection = store.collection("", "services").into_iter().flat_map(|collection| collection.values());
        collection.map(|entry| &***entry.object).filter(|other| uid(other) != own)
    };
    let mut errors = Vec::new();
    let address = string_at(service, "/spec/clusterIP");
    if let Ok(parsed) = address.parse::<std::net::Ipv4Addr>() {
        let [first, second, ..] = parsed.octets();
        let taken = others().any(|other| string_at(other, "/spec/clusterIP") == address);
        let detail = if (first, second) != (10, 96) {
            Some("the provided network does not match the current range")
        } else {
            taken.then_some("provided IP is already allocated")
        };
        if let Some(detail) = detail {
            let detail = format!("failed to allocate IP {address}: {detail}");
            errors.push(FieldError::invalid("spec.clusterIPs", &json!([address]), &detail));
        }
    }
    for (index, port) in array_at(service, "/spec/ports").iter().enumerate() {
        let Some(number) = port.get("nodePort").and_then(Value::as_u64) else { continue };
        let (first, last) = (u64::from(FIRST_NODE_PORT), u64::from(FIRST_NODE_PORT + NODE_PORTS - 1));
        let is_taken = |other: &Value| array_at(other, "/spec/ports").iter().any(|other| other["nodePort"] == number);
        let detail = if (first..=last).contains(&number) {
            others().any(is_taken).then(|| "provided port is already allocated".to_owned())
        } else {
            Some(format!("provided port is not in the valid range. The range of valid ports is {first}-{last}"))
        };
        if let Some(detail) = detail {
            errors.push(FieldError::invalid(format!("spec.ports[{index}].nodePort"), &json!(number), &detail));
        }
    }
    errors.extend(ip_family_errors(service));
    errors
}

/// Rejects IPv6 on this IPv4 cluster, except in headless services without a selector.
fn ip_family_errors(service: &Value) -> Vec<FieldError> {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let has_selector = spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    if string_at(spec, "/clusterIP") == "None" && !has_selector {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (index, family) in array_at(spec, "/ipFamilies").iter().enumerate().filter(|(_, family)| *family == "IPv6") {
        let detail = "not configured on this cluster";
        errors.push(FieldError::invalid(format!("spec.ipFamilies[{index}]"), family, detail));
    }
    let policy = string_at(spec, "/ipFamilyPolicy");
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", &json!(policy), detail));
    }
    errors
}

/// Updates `clusterIPs` from `clusterIP` or the other way round, if the client changed one of them.
fn sync_cluster_ips(live: &Value, service: &mut Value) {
    let one = |service: &Value| service["spec"].get("clusterIP").cloned().unwrap_or_default();
    let many = |service: &Value| service["spec"].get("clusterIPs").cloned().unwrap_or_default();
    let (changed_one, changed_many) = (one(service) != one(live), many(service) != many(live));
    if changed_one && !changed_many {
        service["spec"]["clusterIPs"] = json!([one(service)]);
    } else if changed_many && !changed_one && !many(service)[0].is_null() {
        service["spec"]["clusterIP"] = many(service)[0].clone();
    }
}

/// Removes fields of the previous service type, unless the client changed them.
fn drop_fields_of_previous_type(live: &Value, service: &mut Value) {
    let has_ports = |service: &Value| matches!(string_at(service, "/spec/type"), "NodePort" | "LoadBalancer");
    let is_balanced = |service: &Value| string_at(service, "/spec/type") == "LoadBalancer";
    let numbers = |service: &Value| -> Vec<Value> {
        array_at(service, "/spec/ports").iter().filter_map(|port| port.get("nodePort").cloned()).collect()
    };
    let known = numbers(live);
    if has_ports(live) && !has_ports(service) && numbers(service).iter().all(|number| known.contains(number)) {
        let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    let same = |service: &Value, field: &str| service["spec"].get(field) == live["spec"].get(field);
    let mut gone = Vec::new();
    if is_balanced(live) && !is_balanced(service) {
        gone.extend(["allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"]);
    }
    if is_reachable_from_outside(&live["spec"]) && !is_reachable_from_outside(&service["spec"]) {
        gone.push("externalTrafficPolicy");
    }
    for field in gone {
        if let (true, Some(spec)) = (same(service, field), service["spec"].as_object_mut()) {
            spec.remove(field);
        }
    }
    if !is_balanced(service) && service.pointer("/status/loadBalancer/ingress").is_some() && is_balanced(live) {
        service["status"]["loadBalancer"] = json!({});
    }
}
