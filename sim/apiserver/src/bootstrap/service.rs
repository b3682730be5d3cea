//! The Service `kubernetes` with its endpoints and its address, and the ConfigMaps for extension API servers.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{format_timestamp, metadata};
use crate::object::key::builtin_key;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};
use crate::writes::tracked::write_tracked;

/// Name of the Service, its endpoints and its slice.
const NAME: &str = "kubernetes";
/// Address of the Service, the first one of the range.
const SERVICE_ADDRESS: &str = "10.96.0.1";
/// Address of the API server, from the range for documentation.
const SERVER_ADDRESS: &str = "192.0.2.1";
const SERVER_PORT: u16 = 6443;
const MANAGER: &str = "kube-apiserver";

/// Creates the objects.
pub(super) fn create_service(state: &mut ServerState, now: Timestamp) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": SERVICE_ADDRESS, "internalTrafficPolicy": "Cluster", "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": SERVER_PORT}],
            "sessionAffinity": "None", "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    });
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{
            "addresses": [{"ip": SERVER_ADDRESS}],
            "ports": [{"name": "https", "port": SERVER_PORT, "protocol": "TCP"}],
        }],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"generation": 1, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [SERVER_ADDRESS], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": SERVER_PORT, "protocol": "TCP"}],
    });
    let address = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IPAddress",
        "metadata": {"labels": {
            "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }},
        "spec": {"parentRef": {"name": NAME, "namespace": "default", "resource": "services"}},
    });
    let authentication = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {},
        "data": {"client-ca-file": "-----BEGIN CERTIFICATE-----\nsimulated\n-----END CERTIFICATE-----\n"},
    });
    let day = format_timestamp(now).get(..10).unwrap_or_default().to_owned();
    let tracking = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"since": day}});
    let objects = [
        ("", "services", "default", NAME, service),
        ("", "endpoints", "default", NAME, endpoints),
        ("discovery.k8s.io", "endpointslices", "default", NAME, slice),
        ("networking.k8s.io", "ipaddresses", "", SERVICE_ADDRESS, address),
        ("", "configmaps", "kube-system", "extension-apiserver-authentication", authentication),
        ("", "configmaps", "kube-system", "kube-apiserver-legacy-service-account-token-tracking", tracking),
    ];
    for (group, plural, namespace, name, object) in objects {
        create(state, now, (group, plural, namespace, name), object);
    }
    // The allocator sets these fields, and no manager owns them.
    state.store.rewrite_all("", "services", |service| {
        service["spec"]["clusterIPs"] = json!([SERVICE_ADDRESS]);
        service["spec"]["ipFamilies"] = json!(["IPv4"]);
    });
}

fn create(
    state: &mut ServerState,
    now: Timestamp,
    (group, plural, namespace, name): (&str, &str, &str, &str),
    mut object: Value,
) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let fields = metadata(&mut object);
    fields.insert("name".to_owned(), json!(name));
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = namespace {
        fields.insert("namespace".to_owned(), json!(namespace));
    }
    fields.insert("uid".to_owned(), json!(state.ids.uid()));
    fields.insert("creationTimestamp".to_owned(), json!(format_timestamp(now)));
    let key = builtin_key(group, &kind, plural, namespace, name);
    write_tracked(state, now, &Attribution::controller(MANAGER, Verb::Create), MANAGER, &key, &object);
}
