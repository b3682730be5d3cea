//! The default objects of a namespace, which the controller manager creates and for which the admission of pods waits.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::tracked::write_tracked;
use crate::object::fields::{add_duration, format_timestamp, is_deleting};
use crate::object::key::builtin_key;
use crate::state::schedule::Task;
use crate::state::server_state::ServerState;
use crate::storage::journal::{Attribution, Verb};

/// Maximum time for which the admission of a pod waits for the default service account.
const ACCOUNT_WAIT_MAX: SignedDuration = SignedDuration::from_secs(1);

/// Description annotation of the `kube-root-ca.crt` ConfigMap.
const CA_DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Creates the default objects of a namespace now if they are due within the time for which the admission of a pod waits for
/// them. So the wait takes no time, and the order of events is that of the real server.
pub(crate) fn await_default_objects(state: &mut ServerState, now: Timestamp, namespace: &str) {
    let task = Task::PopulateNamespace(namespace.to_owned());
    if state.schedule.take_before(add_duration(now, ACCOUNT_WAIT_MAX), &task) {
        create_default_objects(state, now, namespace);
    }
}

/// Creates the default service account and the root certificate ConfigMap of a namespace.
pub(crate) fn create_default_objects(state: &mut ServerState, now: Timestamp, name: &str) {
    if state.store.find("", "namespaces", None, name).is_none_or(|object| is_deleting(object)) {
        return;
    }
    let certificate = "-----BEGIN CERTIFICATE-----\nsimulated\n-----END CERTIFICATE-----\n";
    let default_objects = [
        ("service-account-controller", "ServiceAccount", "serviceaccounts", "default", json!({})),
        (
            "root-ca-certificate-publisher",
            "ConfigMap",
            "configmaps",
            "kube-root-ca.crt",
            json!({"data": {"ca.crt": certificate}}),
        ),
    ];
    for (controller, kind, plural, object_name, mut object) in default_objects {
        let key = builtin_key("", kind, plural, Some(name), object_name);
        if state.store.find_key(&key).is_some() {
            continue;
        }
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(kind);
        object["metadata"] = json!({
            "name": object_name, "namespace": name, "uid": state.ids.uid(), "creationTimestamp": format_timestamp(now),
        });
        if kind == "ConfigMap" {
            object["metadata"]["annotations"] = json!({ "kubernetes.io/description": CA_DESCRIPTION });
        }
        let attribution = Attribution::controller(controller, Verb::Create);
        write_tracked(state, now, &attribution, "kube-controller-manager", &key, &object);
    }
}
