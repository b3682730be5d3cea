//! Lifecycle of a namespace: the default objects in it, and its termination.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{finalizers, is_deleting, stamp};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::storage::journal::Verb;
use crate::verbs::Propagation;

/// Description annotation of the `kube-root-ca.crt` ConfigMap.
const CA_DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

fn core_key(kind: &str, plural: &str, namespace: Option<&str>, name: &str) -> StoredKey {
    StoredKey {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

impl ApiServer {
    /// Creates one of the initial namespaces.
    pub(crate) fn create_namespace(&mut self, now: Timestamp, name: &str) {
        let mut namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "uid": self.ids.uid(), "creationTimestamp": stamp(now)},
        });
        if let Some(of) = crate::registry::types::types().of_kind("", "v1", "Namespace") {
            crate::strategy::defaults::fill(of, &mut namespace);
        }
        namespace["spec"] = json!({"finalizers": ["kubernetes"]});
        namespace["status"] = json!({"phase": "Active"});
        let who = Authorship::controller("kube-apiserver", Verb::Create);
        self.write_as(now, &who, "kube-apiserver", &core_key("Namespace", "namespaces", None, name), &namespace);
    }

    /// Creates the default service account and the root certificate ConfigMap of a namespace.
    pub(super) fn create_default_objects(&mut self, now: Timestamp, name: &str) {
        if self.get("", "namespaces", None, name).is_none_or(|object| is_deleting(object)) {
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
            let key = core_key(kind, plural, Some(name), object_name);
            if self.stored(&key).is_some() {
                continue;
            }
            object["apiVersion"] = json!("v1");
            object["kind"] = json!(kind);
            object["metadata"] = json!({
                "name": object_name, "namespace": name, "uid": self.ids.uid(), "creationTimestamp": stamp(now),
            });
            if kind == "ConfigMap" {
                object["metadata"]["annotations"] = json!({ "kubernetes.io/description": CA_DESCRIPTION });
            }
            let who = Authorship::controller(controller, Verb::Create);
            self.write_as(now, &who, "kube-controller-manager", &key, &object);
        }
    }

    /// Deletes the content of a namespace, and the namespace itself once it is empty. Objects with finalizers delay it.
    pub(super) fn terminate_namespace(&mut self, now: Timestamp, name: &str) {
        let Some(namespace) = self.get("", "namespaces", None, name).filter(|object| is_deleting(object)).cloned()
        else {
            return;
        };
        let who = Authorship::controller("namespace-controller", Verb::Delete);
        let content: Vec<_> = self.keys_in(name);
        for key in &content {
            self.delete_key(now, &who, key, Propagation::Background);
        }
        let key = core_key("Namespace", "namespaces", None, name);
        if !self.keys_in(name).is_empty() {
            self.report_remaining_content(now, &key, &namespace);
            return;
        }
        if finalizers(&namespace).is_empty() {
            self.expunge(now, &who, &key);
        } else {
            let mut emptied = Value::clone(&namespace);
            emptied["spec"] = json!({});
            self.write_as(now, &who, "kube-controller-manager", &key, &emptied);
        }
    }

    /// Sets the conditions of a namespace that name the remaining resources and finalizers.
    fn report_remaining_content(&mut self, now: Timestamp, key: &StoredKey, namespace: &Value) {
        let mut resource_counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut finalizer_counts: BTreeMap<String, usize> = BTreeMap::new();
        for remaining in self.keys_in(&key.name) {
            *resource_counts.entry(format!("{}.{}", remaining.plural, remaining.group)).or_default() += 1;
            for finalizer in self.stored(&remaining).map(|object| finalizers(object)).unwrap_or_default() {
                *finalizer_counts.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        let summarize = |counts: &BTreeMap<String, usize>, verb: &str| -> String {
            let parts: Vec<String> =
                counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
            parts.join(", ")
        };
        let remaining = format!("Some resources are remaining: {}", summarize(&resource_counts, "has"));
        let waiting =
            format!("Some content in the namespace has finalizers remaining: {}", summarize(&finalizer_counts, "in"));
        let deleted = "All content successfully deleted, may be waiting on finalization";
        let (discovered, parsed) =
            ("All resources successfully discovered", "All legacy kube types successfully parsed");
        let mut object = namespace.clone();
        let at = stamp(now);
        let conditions = [
            ("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", discovered),
            ("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions", parsed),
            ("NamespaceDeletionContentFailure", false, "ContentDeleted", deleted),
            ("NamespaceContentRemaining", true, "SomeResourcesRemain", remaining.as_str()),
            ("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", waiting.as_str()),
        ];
        for (condition_type, holds, reason, message) in conditions {
            super::set_condition(&mut object, &at, condition_type, holds, reason, message);
        }
        let mut who = Authorship::controller("namespace-controller", Verb::Update);
        who.subresource = "status";
        self.write_as(now, &who, "kube-controller-manager", key, &object);
    }

    fn keys_in(&self, namespace: &str) -> Vec<std::sync::Arc<StoredKey>> {
        let content = self.store.all().filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        content.map(|entry| entry.key.clone()).collect()
    }
}
