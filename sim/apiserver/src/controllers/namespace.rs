//! The life of a namespace: its furniture, and its end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::fields::{finalizers, is_deleting, stamp};
use crate::object::key::StoredKey;
use crate::server::{ApiServer, Authorship};
use crate::storage::journal::Verb;
use crate::verbs::Propagation;

/// What the certificate of a namespace says about itself.
const CERTIFICATE_IS_FOR: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

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
    /// Makes one of the namespaces that exist from the start.
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

    /// Gives a namespace what every namespace has: a service account, and the certificate of the cluster.
    pub(super) fn furnish_namespace(&mut self, now: Timestamp, name: &str) {
        if self.get("", "namespaces", None, name).is_none_or(|found| is_deleting(found)) {
            return;
        }
        let certificate = "-----BEGIN CERTIFICATE-----\nsimulated\n-----END CERTIFICATE-----\n";
        let furniture = [
            ("service-account-controller", "ServiceAccount", "serviceaccounts", "default", json!({})),
            (
                "root-ca-certificate-publisher",
                "ConfigMap",
                "configmaps",
                "kube-root-ca.crt",
                json!({"data": {"ca.crt": certificate}}),
            ),
        ];
        for (controller, kind, plural, object_name, mut object) in furniture {
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
                object["metadata"]["annotations"] = json!({ "kubernetes.io/description": CERTIFICATE_IS_FOR });
            }
            let who = Authorship::controller(controller, Verb::Create);
            self.write_as(now, &who, "kube-controller-manager", &key, &object);
        }
    }

    /// Deletes what is in a namespace, and the namespace when nothing is left. Objects with finalizers keep it waiting.
    pub(super) fn terminate_namespace(&mut self, now: Timestamp, name: &str) {
        let Some(namespace) = self.get("", "namespaces", None, name).filter(|found| is_deleting(found)).cloned() else {
            return;
        };
        let who = Authorship::controller("namespace-controller", Verb::Delete);
        let content: Vec<_> = self.keys_in(name);
        for key in &content {
            self.delete_key(now, &who, key, Propagation::Background);
        }
        let key = core_key("Namespace", "namespaces", None, name);
        if !self.keys_in(name).is_empty() {
            self.tell_what_remains(now, &key, &namespace);
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

    /// Says in the conditions of a namespace what keeps it.
    fn tell_what_remains(&mut self, now: Timestamp, key: &StoredKey, namespace: &Value) {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        let mut keepers: BTreeMap<String, usize> = BTreeMap::new();
        for left in self.keys_in(&key.name) {
            *kinds.entry(format!("{}.{}", left.plural, left.group)).or_default() += 1;
            for finalizer in self.stored(&left).map(|object| finalizers(object)).unwrap_or_default() {
                *keepers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        let told = |counts: &BTreeMap<String, usize>, verb: &str| -> String {
            let parts: Vec<String> =
                counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
            parts.join(", ")
        };
        let remaining = format!("Some resources are remaining: {}", told(&kinds, "has"));
        let waiting = format!("Some content in the namespace has finalizers remaining: {}", told(&keepers, "in"));
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
        for (kind, holds, reason, message) in conditions {
            super::set_condition(&mut object, &at, kind, holds, reason, message);
        }
        let mut who = Authorship::controller("namespace-controller", Verb::Update);
        who.subresource = "status";
        self.write_as(now, &who, "kube-controller-manager", key, &object);
    }

    fn keys_in(&self, namespace: &str) -> Vec<std::sync::Arc<StoredKey>> {
        let within = self.store.all().filter(|entry| entry.key.namespace.as_deref() == Some(namespace));
        within.map(|entry| entry.key.clone()).collect()
    }
}
