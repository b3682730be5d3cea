//! Revisions of stateful sets and daemon sets: what each looked like, so that one can go back to it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::template_hash::fnv32;
use super::writes::{controlled_by, controller_reference, key_of, number};
use crate::object::fields::{name, text, uid};
use crate::object::key::StoredKey;
use crate::server::ApiServer;
use crate::storage::ids::safe_encode;

const REVISIONS: (&str, &str) = ("apps", "controllerrevisions");

/// What a revision remembers of its owner: how to get back to this template.
fn data_of(owner: &Value) -> Value {
    let mut template = owner["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

/// The hash of a revision, over what it remembers as Go writes it, and the number of collisions, of which there are none.
pub(super) fn revision_hash(owner: &Value) -> String {
    let written = data_of(owner).to_string();
    let mut escaped = written.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    escaped.push('0');
    safe_encode(&fnv32(escaped.as_bytes()).to_string())
}

impl ApiServer {
    /// The revisions of an owner, oldest first.
    fn revisions_of(&self, owner: &Value) -> Vec<(StoredKey, Value)> {
        let here = self.store.in_namespace(REVISIONS.0, REVISIONS.1, text(owner, "/metadata/namespace"));
        let own = here.filter(|entry| {
            controlled_by(&entry.object).is_some_and(|reference| text(reference, "/uid") == uid(owner))
        });
        let mut found: Vec<(StoredKey, Value)> =
            own.map(|entry| (StoredKey::clone(&entry.key), Value::clone(&entry.object))).collect();
        found.sort_by_key(|(_, revision)| number(revision, "/revision"));
        found
    }

    /// The name of the revision that describes an owner as it is; made, or numbered anew, if need be.
    pub(super) fn current_revision(
        &mut self,
        now: Timestamp,
        controller: &'static str,
        owner: &Value,
        hash: &str,
        labels: Value,
    ) -> Option<String> {
        let known = self.revisions_of(owner);
        let newest = known.last().map_or(0, |(_, revision)| number(revision, "/revision"));
        let data = data_of(owner);
        if let Some((key, same)) = known.iter().find(|(_, revision)| revision["data"] == data) {
            if number(same, "/revision") < newest {
                let mut renewed = same.clone();
                renewed["revision"] = json!(newest + 1);
                self.replace(now, controller, key, renewed);
            }
            return Some(key.name.clone());
        }
        let own = format!("{}-{hash}", name(owner));
        let object = json!({
            "metadata": {
                "name": own, "labels": labels, "ownerReferences": [controller_reference(owner)],
                "annotations": owner["metadata"].get("annotations"),
            },
            "data": data, "revision": newest + 1,
        });
        let namespace = text(owner, "/metadata/namespace");
        self.make(now, controller, REVISIONS, namespace, object).ok()?;
        Some(own)
    }

    /// The template that a revision remembers.
    pub(super) fn template_in(&self, owner: &Value, revision: &str) -> Option<Value> {
        let namespace = text(owner, "/metadata/namespace");
        let key = key_of("apps", "ControllerRevision", "controllerrevisions", Some(namespace), revision);
        let mut template = self.stored(&key)?.pointer("/data/spec/template")?.clone();
        if let Some(fields) = template.as_object_mut() {
            fields.remove("$patch");
        }
        Some(template)
    }

    /// Deletes the oldest revisions that nothing has any more.
    pub(super) fn forget_revisions(
        &mut self,
        now: Timestamp,
        controller: &'static str,
        owner: &Value,
        in_use: &[String],
    ) {
        let limit = owner.pointer("/spec/revisionHistoryLimit").and_then(Value::as_u64).unwrap_or(10);
        let idle: Vec<(StoredKey, Value)> =
            self.revisions_of(owner).into_iter().filter(|(key, _)| !in_use.contains(&key.name)).collect();
        let excess = idle.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for (key, _) in idle.into_iter().take(excess) {
            self.discard(now, controller, &key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_has_the_hash_that_the_real_controller_gave_it() {
        let container = json!({
            "args": ["<a&b>"], "image": "pg:1", "imagePullPolicy": "IfNotPresent", "name": "db", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        });
        let set = json!({"spec": {"template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {
                "containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
            },
        }}});
        assert_eq!(revision_hash(&set), "57fd5cf7bd");
    }
}
